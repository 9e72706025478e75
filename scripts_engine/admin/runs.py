"""Runs: read-only. Lists stay fast however many there are: newest first by key, never counted."""

import uuid
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.paginator import InfinitePaginator
from unfold.views import ChangeList

from accounts.admin.decorators import display
from accounts.admin.moment_filter import MomentFilter
from accounts.admin.scoped_filter import ScopedAutocompleteFilter
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from scripts_engine.admin.run_page import body_of, host_calls_of, logs_of, source_around
from scripts_engine.admin.statuses import COLOURS, status_label
from scripts_engine.models import Run

_LARGE = (
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "logs",
    "host_calls",
    "error_traceback",
)


class RunChangeList(ChangeList):
    """Leaves payloads and logs, which the list does not show, in the database."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Run]:
        rows: QuerySet[Run] = super().get_queryset(request, exclude_parameters)
        return rows.defer(*_LARGE)


@admin.register(Run)
class RunAdmin(ReadOnlyTenantModelAdmin):
    change_form_template = "admin/run.html"
    fields = readonly_fields = ("id",)
    list_display = (
        "started_at",
        "script",
        "status_label",
        "response_status",
        "duration",
        "hook",
        "shown_trigger",
    )
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("script", ScopedAutocompleteFilter),
        ("hook", ScopedAutocompleteFilter),
        ("trigger", ChoicesDropdownFilter),
        ("started_at", MomentFilter),
    )
    list_filter_submit = True
    list_select_related = ("script", "hook")
    search_fields = ("id",)
    search_help_text = "Run id, as in the reply's Moonhook-Run-Id"
    ordering = ("-id",)
    sortable_by = ()
    paginator = InfinitePaginator
    show_full_result_count = False
    actions = None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The run with that id: nothing else of a run has an index to be searched by."""
        if not search_term:
            return queryset, False
        try:
            run_id = uuid.UUID(search_term.strip())
        except ValueError:
            return queryset.none(), False
        return queryset.filter(pk=run_id), False

    @display(description="Outcome", label=COLOURS)
    def status_label(self, run: Run) -> tuple[str, str]:
        return run.status, run.get_status_display()

    @display(description="Ran")
    def duration(self, run: Run) -> str:
        return f"{run.duration_ms:.1f} ms"

    @display(description="Trigger")
    def shown_trigger(self, run: Run) -> str:
        return run.get_trigger_display()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        run: Run = self.get_or_404(request, object_id)
        context = {
            **(extra_context or {}),
            "title": f"Run of {run.script}",
            "run": run,
            "status": status_label(run.status),
            "request_body": body_of(run.request_body),
            "response_body": body_of(run.response_body),
            "logs": logs_of(run),
            "host_calls": host_calls_of(run),
            "source_lines": source_around(run),
            "show_history": False,
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response
