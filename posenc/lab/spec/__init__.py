"""Specifications of training: runs and plans, experiments, presets and suites, and their texts. No jax."""
