"""What happens to sessions, one file an event."""
