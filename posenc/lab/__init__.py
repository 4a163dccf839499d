"""The laboratory: what is trained, how its trials share a program, what is stored, and what the numbers say."""
