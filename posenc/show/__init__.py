"""What a reader sees: figures, tables, reports and explanations, drawn from stored results alone."""
