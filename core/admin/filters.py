"""Filters of the admin's lists: by a related object, and by a stretch of time."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter, RangeDateTimeFilter

from core.database.ids import before, parse_uuid, since


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


class MomentFilter(RangeDateTimeFilter):
    """By a time without an index, within the ids of that time. What is no date and time is left
    out of account.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first, last = self._typed("from"), self._typed("to")
        if first is not None:
            queryset = queryset.filter(since(self.field_path, first))
        if last is not None:
            queryset = queryset.filter(before(self.field_path, last, inclusive=True))
        return queryset

    def _typed(self, end: str) -> datetime | None:
        """The time in UTC; a date alone is its midnight."""
        name = f"{self.parameter_name}_{end}"
        date = self.used_parameters.get(f"{name}_0", "")
        time = self.used_parameters.get(f"{name}_1") or "00:00"
        try:
            moment = datetime.fromisoformat(f"{date} {time}")
            return moment.replace(tzinfo=UTC)
        except ValueError:
            return None
