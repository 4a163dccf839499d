"""The recorder needs torch and transformers, in an environment of its own: nothing of it is a test."""

collect_ignore = ["capture.py", "models.py", "reasons.py", "record.py", "record_walk.py"]
