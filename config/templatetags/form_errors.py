"""Errors of forms, as the note above a form counts them."""

from typing import Any

from django import template
from django.core.exceptions import NON_FIELD_ERRORS

register = template.Library()


@register.filter
def count_at_fields(errors: Any) -> int:
    """The number of fields with errors; errors of the form as a whole have a box of their own."""
    if isinstance(errors, dict):
        return len(errors.keys() - {NON_FIELD_ERRORS})
    return sum(1 for error in errors or () if "nonfield" not in getattr(error, "error_class", ""))
