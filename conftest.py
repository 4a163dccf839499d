"""What pytest needs before it collects: the option `--golden`, and this folder on the path for tests to share code."""

pytest_plugins = ["tests.golden.report"]
