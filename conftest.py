"""What pytest needs before it collects: its options `--golden` and `--record`, and this folder on the path."""

pytest_plugins = ["tests.golden.report", "tests.recording"]
collect_ignore = ["posenc/tasks.py"]  # another name of posenc.lab.tasks, whose examples run there
