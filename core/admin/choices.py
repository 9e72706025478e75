"""Fields of forms that choose a row."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.forms import ModelChoiceField


class RowChoiceField(ModelChoiceField[Model]):
    """Shows a malformed id as no choice: Django's widgets look every id up, which raises for it."""

    def prepare_value(self, value: Any) -> Any:
        shown = super().prepare_value(value)
        try:
            self.queryset.model._meta.pk.to_python(shown)  # type: ignore[union-attr]
        except (ValidationError, ValueError):
            return None
        return shown
