"""Models that were kept, used again: evaluated on other questions, and writing on from a prompt."""
