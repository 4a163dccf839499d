"""Results read from records: rows, statistics, and verdicts on published numbers. No jax."""
