"""What lies on disk: run folders, records, claims, parameters."""
