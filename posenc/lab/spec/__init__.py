"""What is to be trained: runs and plans, experiments, presets and suites, and the texts that say them. No jax."""
