"""The report of a run: one file that opens anywhere, for somebody who was not there."""
