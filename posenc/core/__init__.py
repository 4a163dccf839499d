"""Schemes, their composition, and what they own: parameters, masks, distances."""
