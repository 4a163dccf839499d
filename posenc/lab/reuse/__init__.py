"""Models that were kept, used again: evaluated anew, and writing on from a prompt."""
