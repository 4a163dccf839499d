"""Parts that the NNX, Linen and Equinox modules share."""
