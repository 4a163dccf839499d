"""Comparisons side by side in one run: each file answers one question, prints a table, and writes one JSON file."""
