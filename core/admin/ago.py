"""Relative times in words."""

from datetime import datetime

from django.utils.timesince import timesince, timeuntil


def ago(moment: datetime) -> str:
    """Return a text like ``5 minutes ago``."""
    span = timesince(moment, depth=1)
    return "just now" if span.startswith("0") else f"{span} ago"


def until(moment: datetime) -> str:
    """Return a text like ``in 5 days``."""
    return f"in {timeuntil(moment, depth=1)}"
