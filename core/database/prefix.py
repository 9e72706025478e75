"""Conditions on the beginning of a text column, answered from its unique index."""

from django.db import connection
from django.db.models import Q


def starts_with(field: str, prefix: str) -> Q:
    """Select rows whose text starts with the prefix, which must not be empty.

    PostgreSQL has an index of patterns beside the unique index. SQLite has none, but compares text
    byte by byte, so that a range of its unique index serves.
    """
    if connection.vendor == "postgresql":
        return Q(**{f"{field}__startswith": prefix})
    return Q(**{f"{field}__gte": prefix, f"{field}__lt": prefix + "\U0010ffff"})
