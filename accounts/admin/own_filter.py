from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import BooleanRadioFilter


class OwnUsersFilter(BooleanRadioFilter):
    """A filter by what only home may see: it finds no other user, whatever their value is."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().queryset(request, queryset)
        return rows if self.value() in (None, "") else rows.filter(is_own=True)
