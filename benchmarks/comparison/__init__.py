"""Moonhook beside its floor and what one would pick instead: `make bench`."""
