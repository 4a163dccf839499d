"""Figures and tables of stored results."""
