"""What pytest needs before it collects: the option `--golden`, and this folder on the path, so that tests share code."""

pytest_plugins = ["tests.golden.report"]
