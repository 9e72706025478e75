"""Checks a request that a person or a program has typed, before a script gets it."""

import re

from django.core.exceptions import ValidationError

METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE")
MAX_HEADERS = 100
MAX_HEADER_CHARACTERS = 8 * 1024
# RFC 9110, sections 5.1 and 5.5: a token, and the characters of a field value.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_QUERY = re.compile(r"[\x21-\x7e]*")


def clean_query(query: str) -> str:
    """The query without its question mark. Raises ``ValidationError``."""
    query = query.removeprefix("?")
    if not _QUERY.fullmatch(query):
        raise ValidationError("Write the query as in a URL: page=2&q=tea%20pot.")
    return query


def clean_header(name: str, value: str) -> tuple[str, str]:
    """The header with its value trimmed. Raises ``ValidationError``."""
    value = value.strip(" \t")
    is_short = len(name) + len(value) <= MAX_HEADER_CHARACTERS
    if not is_short or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise ValidationError(f"“{name[:60]}” is not a valid header.")
    return name, value
