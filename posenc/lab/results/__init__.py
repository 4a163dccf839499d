"""What records say: rows, statistics, and verdicts on published numbers. No jax."""
