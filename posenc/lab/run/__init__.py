"""From an experiment to finished records: the plan, the worker, the sweep."""
