"""What happens to scripts, hooks and runs, one file a subject."""
