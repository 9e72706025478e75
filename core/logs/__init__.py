"""What every process writes down: one event a line, never a secret."""
