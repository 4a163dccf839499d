"""What the NNX, Linen and Equinox modules share."""
