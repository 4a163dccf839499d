"""Data on disk: run folders, records, claims, parameters."""
