"""Runs that nobody waits for: queued with their payload, claimed by runners, tried again."""
