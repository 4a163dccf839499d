"""Cards: what there is to say of a scheme or anything else. Importing this needs no jax; describing a scheme does."""
