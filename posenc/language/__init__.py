"""Text and objects: the grammar of a scheme's text, and the registries that give its names a meaning. No jax."""
