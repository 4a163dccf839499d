"""Comparisons side by side in one run: each file answers one question, prints a table, and can write a JSON file."""
