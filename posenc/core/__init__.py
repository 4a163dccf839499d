"""What a scheme is, how schemes compose, and what they own: parameters, masks, distances."""
