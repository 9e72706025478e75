"""A filter by a related object, chosen by typing."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from core.database.ids import parse_uuid


class ScopedAutocompleteFilter(AutocompleteSelectFilter):
    """Knows only the objects that the person may see: an id may have been typed by hand."""

    def value(self) -> str | None:
        """The chosen id; what was typed by hand and is none chooses nothing."""
        typed = super().value()
        return typed if typed and parse_uuid(typed) else None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if not chosen:
            return queryset.none() if super().value() else queryset
        if self._other_admin().get_object(request, chosen) is None:
            return queryset.none()
        # Of an id given several times only the first was checked, so only that one counts.
        return queryset.filter(**{self.lookup_kwarg: chosen})

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        for choice in super().choices(changelist):
            field = choice["form"].fields[self.lookup_kwarg]
            field.queryset = self._other_admin().get_queryset(self.request)
            yield choice

    def _other_admin(self) -> Any:
        return self.model_admin.admin_site.get_model_admin(self.field.remote_field.model)
