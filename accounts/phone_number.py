"""Telephone numbers in E.164 form: ``+`` and 7 to 15 digits."""

import re

from django.core.exceptions import ValidationError

_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_SEPARATORS = str.maketrans("", "", " -.()/")


def canonical_phone(typed: str) -> str:
    """The number without separators; ``""`` stays empty."""
    return typed.strip().translate(_SEPARATORS)


def validate_phone(number: str) -> None:
    if not _E164.fullmatch(number):
        raise ValidationError(
            "Enter the number with its country code, such as +491701234567.", code="invalid"
        )
