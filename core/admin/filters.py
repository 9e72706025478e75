"""Filters for the admin's lists: by a related object, a period of time, and revocation."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    RadioFilter,
    RangeDateTimeFilter,
)

from core.database.ids import before, parse_uuid, since

_IS_NULL = {"no": True, "yes": False}
NOT_REVOKED = {"revoked": "no"}


class ScopedAutocompleteFilter(AutocompleteSelectFilter):
    """Accepts only objects that the user may see, because the URL can hold any id."""

    def value(self) -> str | None:
        """Returns the chosen id, or ``None`` if the URL holds no valid one."""
        raw = super().value()
        return raw if raw and parse_uuid(raw) else None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if not chosen:
            return queryset.none() if super().value() else queryset
        if not self._offered(request).filter(pk=chosen).exists():
            return queryset.none()
        # If the URL repeats the parameter, only the first id was checked, so only it counts.
        return self.chosen(queryset, chosen)

    def chosen(self, queryset: QuerySet[Any], primary_key: str) -> QuerySet[Any]:
        """The rows that refer to the chosen object."""
        return queryset.filter(**{self.lookup_kwarg: primary_key})

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        for choice in super().choices(changelist):
            field = choice["form"].fields[self.lookup_kwarg]
            field.queryset = self._offered(self.request)
            yield choice

    def _offered(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model_admin.rows_to_choose(
            request, self.field.remote_field.model
        )
        return rows


class PeriodFilter(RangeDateTimeFilter):
    """Filters by UUIDv7 id, which is indexed, and by the time field, which is not.

    Ignores values that are not valid dates or times.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = f"{self.field.verbose_name} (UTC)"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first, last = self._bound("from"), self._bound("to")
        if first is not None:
            queryset = queryset.filter(since(self.field_path, first))
        if last is not None:
            queryset = queryset.filter(before(self.field_path, last, inclusive=True))
        return queryset

    def _bound(self, end: str) -> datetime | None:
        """Returns the time in UTC; a date without a time means midnight."""
        name = f"{self.parameter_name}_{end}"
        date = self.used_parameters.get(f"{name}_0", "")
        time = self.used_parameters.get(f"{name}_1") or "00:00"
        try:
            moment = datetime.fromisoformat(f"{date} {time}")
            return moment.replace(tzinfo=UTC)
        except ValueError:
            return None


class RevokedFilter(RadioFilter):
    """Filters credentials by whether they were revoked."""

    title = parameter_name = "revoked"
    all_option = ("", "Any")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "Not revoked"), ("yes", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        is_null = _IS_NULL.get(self.value() or "")
        return queryset if is_null is None else queryset.filter(revoked_at__isnull=is_null)
