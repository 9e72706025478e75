"""Compares Moonhook with a bare view and with common alternatives: `make bench`."""
