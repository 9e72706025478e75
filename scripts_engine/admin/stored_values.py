"""Read-only pages of the values that scripts store between runs."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator

from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from core.admin.display import EmptyState, display
from core.admin.filters import ScopedAutocompleteFilter
from scripts_engine.models import StoredValue

_LISTED_CHARACTERS = 80


@admin.register(StoredValue)
class StoredValueAdmin(ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "Scripts keep values between runs with store.set(key, value). Stored values appear here.",
        "Scripts",
        "admin:scripts_engine_script_changelist",
    )
    list_display = ("__str__", "beginning", "organisation", "updated_at", "expires_at")
    list_filter = (("organisation", ScopedAutocompleteFilter),)
    list_select_related = ("organisation",)
    fields = ("__str__", "value", "organisation", "updated_at", "expires_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).live()  # type: ignore[attr-defined]
        return rows

    @display(description="Value")
    def beginning(self, stored: StoredValue) -> str:
        return Truncator(stored.value).chars(_LISTED_CHARACTERS)
