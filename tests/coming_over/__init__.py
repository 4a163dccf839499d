"""What other packages call the same, run beside posenc where they are installed, and on stored numbers."""
