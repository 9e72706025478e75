"""Errors of flows on the fields of forms."""

from django import forms
from django.core.exceptions import ValidationError


def add_errors(form: forms.Form, error: ValidationError) -> None:
    """Adds each error to its field, or to the form if it has no such field."""
    for name, messages in error.message_dict.items():
        form.add_error(name if name in form.fields else None, messages)
