"""Run pages, read-only. The list is ordered by primary key, so it stays fast at any size."""

import uuid
from typing import Any

from django.contrib import admin, messages
from django.db import connection
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.formats import date_format
from django.utils.html import format_html
from unfold.views import ChangeList

from accounts.admin.reach import is_superuser, person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from core.admin.display import EmptyState, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, link, page_of
from core.http.bulkhead import place_left_to_others
from core.http.client_address import client_address
from scripts_engine.admin.runs.bodies import body_of
from scripts_engine.admin.runs.filters import (
    OutcomeFilter,
    RecentFilter,
    SourceFilter,
    StartTimeFilter,
    TriggerFilter,
)
from scripts_engine.admin.runs.presentation import (
    errors_of,
    hint_of_error,
    logs_of,
    source_around,
    timeline_of,
    trigger_of,
)
from scripts_engine.admin.runs.searching import (
    ErrorFilter,
    PayloadFilter,
    ResponseFilter,
    SameErrorFilter,
)
from scripts_engine.admin.runs.statuses import COLOURS, status_label
from scripts_engine.flows.author import Author
from scripts_engine.flows.try_script import headers_left_out, run_again
from scripts_engine.models import Run, RunStatus
from scripts_engine.not_run import NOT_RUN_ERRORS, why_not_run

_DEFERRED_FIELDS = (
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "unsaved_source",
    "logs",
    "host_calls",
    "error_message",
    "error_traceback",
    "error_line",
    # Small, but stored after the payloads: SQLite would read those first.
    "request_bytes",
    "response_bytes",
    "payload_bytes",
    "payload_removed_at",
)


class RunChangeList(ChangeList):
    """Loads no payloads and logs, which the list does not show, and errors of failed runs only."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Run]:
        rows: QuerySet[Run] = super().get_queryset(request, exclude_parameters)
        return rows.defer(*_DEFERRED_FIELDS)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        failed = [run.pk for run in self.result_list if run.status != RunStatus.SUCCEEDED]
        errors = errors_of(failed) if failed else {}
        for run in self.result_list:
            run.error = errors.get(run.pk)


@admin.register(Run)
class RunAdmin(ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "A run appears when a hook is called or a script is tried. Create a hook and call it "
        "with the curl command on its page.",
        "Create hook",
        "admin:scripts_engine_hook_add",
    )
    change_form_template = "admin/run.html"
    fields = readonly_fields = ("id",)
    list_display = (
        "shown_start",
        "script",
        "status_label",
        "shown_error",
        "shown_response",
        "duration",
        "shown_trigger",
    )
    list_filter = (
        ("status", OutcomeFilter),
        ("script", ScopedAutocompleteFilter),
        ("hook", ScopedAutocompleteFilter),
        ("trigger", TriggerFilter),
        SourceFilter,
        RecentFilter,
        ("started_at", StartTimeFilter),
        ResponseFilter,
        ErrorFilter,
        PayloadFilter,
        SameErrorFilter,
    )
    list_before_template = "admin/run_searches.html"
    list_filter_submit = True
    list_select_related = ("script", "hook")
    search_fields = ("id",)
    search_help_text = "Run ID from the Moonhook-Run-Id header"
    ordering = ("-id",)
    actions = None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Adds the organisation for superusers, who see all of them."""
        started, *others = self.list_display
        return (started, "organisation", *others) if is_superuser(request) else self.list_display

    def get_list_filter(self, request: HttpRequest) -> tuple[Any, ...]:
        of_organisation = ("organisation", ScopedAutocompleteFilter)
        return (of_organisation, *self.list_filter) if is_superuser(request) else self.list_filter

    def get_list_select_related(self, request: HttpRequest) -> tuple[str, ...]:
        of_organisation = ("organisation",) if is_superuser(request) else ()
        return (*self.list_select_related, *of_organisation)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Finds a run by its id, the only indexed text of a run."""
        if not search_term:
            return queryset, False
        try:
            run_id = uuid.UUID(search_term.strip())
        except ValueError:
            return queryset.none(), False
        return queryset.filter(pk=run_id), False

    @display(description="Started")
    def shown_start(self, run: Run) -> str:
        return date_format(run.started_at, "DATETIME_FORMAT")

    @display(description="Outcome", label=COLOURS)
    def status_label(self, run: Run) -> tuple[str, str]:
        return run.status, run.get_status_display()

    @display(description="Error")
    def shown_error(self, run: Any) -> str:
        """The first line of the error; all of it as the title."""
        if run.error is None:
            return ""
        title, line = run.error
        return format_html('<span class="mh-run-error" title="{}">{}</span>', title, line)

    @display(description="Response")
    def shown_response(self, run: Run) -> int:
        return run.response_status

    @display(description="Duration")
    def duration(self, run: Run) -> str:
        return f"{run.duration_ms:.1f}\N{NO-BREAK SPACE}ms"

    @display(description="Trigger")
    def shown_trigger(self, run: Run) -> str:
        return trigger_of(run)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        run: Run = self.get_or_404(request, object_id)
        newer, older = Run.objects.newer_than(run), Run.objects.older_than(run)
        context = {
            **(extra_context or {}),
            "title": f"Run of {run.script}",
            "run": run,
            "status": status_label(run.status),
            "timeline": timeline_of(run),
            "error_hint": hint_of_error(run),
            "request_body": body_of(run.request_body),
            "response_body": body_of(run.response_body),
            "logs": logs_of(run),
            "source_lines": source_around(run),
            "newer": newer and page_of(newer),
            "older": older and page_of(older),
            "show_history": False,
        }
        is_callable = run.script.deleted_at is None and run.script.organisation.is_active
        if is_callable and run.payload_removed_at is None:
            context["run_again"] = action_of(run, "again")
            context["try_it"] = action_of(run.script, "change", run=run.pk)
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def get_urls(self) -> list[URLPattern]:
        again = path(
            "<path:object_id>/again/",
            self.admin_site.admin_view(self.again),
            name="scripts_engine_run_again",
        )
        return [again, *super().get_urls()]

    def again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Runs the script with this run's payload and shows the new run. POST only."""
        run: Run = self.get_or_404(request, object_id)
        if run.script.deleted_at is not None:
            raise Http404
        if request.method != "POST":
            return redirect(page_of(run))
        if run.payload_removed_at is not None:
            self.message_user(request, "This run's payload was removed.", messages.ERROR)
            return redirect(page_of(run))
        connection.lift_deadline()  # type: ignore[attr-defined]
        try:
            # Scripts are limited by sandbox slots, not by this bulkhead.
            with place_left_to_others(request):
                new = run_again(
                    run, author=Author(user=person(request)), client_address=client_address(request)
                )
        except NOT_RUN_ERRORS as error:
            self.message_user(request, why_not_run(error).text, messages.ERROR)
            return redirect(page_of(run))
        payload = link(page_of(run), f"the run at {run.started_at:%Y-%m-%d %H:%M:%S} UTC")
        message = format_html("New run with the payload of {}.", payload)
        if names := headers_left_out(run):
            message = format_html("{} Omitted, because not stored: {}.", message, ", ".join(names))
        self.message_user(request, message, messages.SUCCESS)
        return redirect(page_of(new))
