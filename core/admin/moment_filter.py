"""Rows of a stretch of time, found by the primary key."""

from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RangeDateTimeFilter

from core.database.time_ordered import before, since


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
