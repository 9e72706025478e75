"""Structured logs: one event per line, without secrets."""
