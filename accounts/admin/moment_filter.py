"""Rows of a stretch of time, found by the primary key."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RangeDateTimeFilter

from accounts.ids import first_id_at

# An id may be older than the row's time: a run's is made when it is asked for.
_LONGEST_WAIT = timedelta(minutes=1)


class MomentFilter(RangeDateTimeFilter):
    """By a time without an index, within the ids of that time, which are UUIDs of version 7 and
    begin with it. What is no date and time is left out of account.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        since, until = self._typed("from"), self._typed("to")
        name = self.parameter_name
        if since is not None:
            first = first_id_at(since - _LONGEST_WAIT)
            queryset = queryset.filter(**{f"{name}__gte": since, "pk__gte": first})
        if until is not None:
            after = first_id_at(until + timedelta(seconds=1))
            queryset = queryset.filter(**{f"{name}__lte": until, "pk__lt": after})
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
