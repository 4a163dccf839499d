"""What pytest needs before it collects: the options `--golden` and `--record`, and this folder on the path for tests to share code."""

pytest_plugins = ["tests.golden.report", "tests.recording"]
