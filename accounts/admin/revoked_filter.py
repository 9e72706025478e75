"""Filter of credentials by whether they were revoked."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RadioFilter

_IS_NULL = {"no": True, "yes": False}
NOT_REVOKED = {"revoked": "no"}


class RevokedFilter(RadioFilter):
    title = parameter_name = "revoked"
    all_option = ("", "Any")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "Not revoked"), ("yes", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        is_null = _IS_NULL.get(self.value() or "")
        return queryset if is_null is None else queryset.filter(revoked_at__isnull=is_null)
