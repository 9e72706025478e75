from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from scripts_engine.models import ScriptVersion


@admin.register(ScriptVersion)
class ScriptVersionAdmin(ReadOnlyTenantModelAdmin):
    """A source as it was; reached from the page of its script and from runs."""

    organisation_path = "script__organisation"
    list_display = ("__str__", "created_at", "created_by", "created_with")
    list_select_related = ("script", "created_by", "created_with")
    ordering = ("-id",)
    fields = ("script", "number", "source", "created_at", "created_by", "created_with")
    readonly_fields = fields

    def get_model_perms(self, request: HttpRequest) -> dict[str, Any]:
        """In no menu."""
        return {}
