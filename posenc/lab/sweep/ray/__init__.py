"""A sweep on a Ray cluster: nodes train groups and return their records, the driver writes them into the run folder."""
