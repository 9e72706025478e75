"""Releases: what goes live together, how it is undone, and plans of it from a manifest."""
