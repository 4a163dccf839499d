"""Attention by hand, what each scheme does to it, and cards of what has a name."""
