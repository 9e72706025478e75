"""Run pages, read-only. The list is ordered by primary key, so it stays fast at any size."""

import uuid
from typing import Any, NamedTuple, cast

from django.contrib import messages
from django.db import connection
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from accounts.admin.reach import has_scope, is_superuser, organisation_ids_with, person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.scopes import Scope
from core.admin.display import display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, link, page_of
from core.admin.panels import PageContext
from core.admin.times import relative
from core.database.ids import ids_from_prefix
from core.http.bulkhead import place_left_to_others
from core.http.origin import client_address
from scripts_engine.admin.runs.bodies import body_of
from scripts_engine.admin.runs.filters import (
    EVERY_ATTEMPT,
    YES,
    AttemptsFilter,
    DeadLetterFilter,
    ErrorFilter,
    OutcomeFilter,
    PayloadFilter,
    RecentFilter,
    ResponseFilter,
    SameErrorFilter,
    SourceFilter,
    StartTimeFilter,
    TriggerFilter,
    runs_about,
)
from scripts_engine.admin.runs.presentation import (
    COLOURS,
    errors_of,
    hint_of_error,
    logs_of,
    source_around,
    status_label,
    trigger_of,
)
from scripts_engine.admin.runs.timeline import timeline_of
from scripts_engine.admin.scripts.live import live_of
from scripts_engine.callers import callers_of, name_triggers
from scripts_engine.models import Run, Trigger
from scripts_engine.models.run import CALLED, FAILURES, RunQuerySet
from scripts_engine.models.script import author_of
from scripts_engine.releases.live import release_that_ran
from scripts_engine.runs.execution import headers_left_out, run_again
from scripts_engine.runs.problems import NOT_RUN_ERRORS, why_not_run
from scripts_engine.runs.spec import Author

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
    "sender",
    "verified",
    "event_id",
)


# They find runs by what came in or out, which only some roles read.
_FILTERS_OF_PAYLOADS = (ErrorFilter, PayloadFilter, SameErrorFilter)


class Replay(NamedTuple):
    """The button that runs a payload again, and what it does."""

    address: str
    what: str


_RUNS_NOW = "Replay runs this payload now with the live version of the script, as a new run."


class RunChangeList(ChangeList):
    """Loads no payloads and logs, which the list does not show, and errors of failed runs only."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Run]:
        rows: Any = super().get_queryset(request, exclude_parameters)
        rows = rows.defer(*_DEFERRED_FIELDS)
        if self._is_folded(request):
            folded: QuerySet[Run] = rows.last_attempts()
            # On indexes alone, without the columns that SQLite stores after the payloads.
            folded.counted_as = rows, rows.followed()  # type: ignore[attr-defined]
            return folded
        return rows

    def _is_folded(self, request: HttpRequest) -> bool:
        """Whether each piece of work has one row: not if an attempt is looked up by its id."""
        query = request.GET
        if query.get(AttemptsFilter.parameter_name) == EVERY_ATTEMPT:
            return False
        # Dead letters are last attempts already.
        is_of_dead_letters = query.get(DeadLetterFilter.parameter_name) == YES
        return not is_of_dead_letters and ids_from_prefix(self.query or "") is None

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # An error may quote what came in.
        readable = self.model_admin.payloads_readable(request, self.result_list)
        failed = [
            run.pk for run in self.result_list if run.status in FAILURES and run.pk in readable
        ]
        errors = errors_of(failed) if failed else {}
        rows: Any = name_triggers(self.result_list)
        for run, trigger in rows:
            run.error = errors.get(run.pk)
            run.trigger_name = trigger_of(run, trigger)


class RunAdmin(PageContext, ReadOnlyTenantModelAdmin):
    """What every run has. The apps that queue runs and start them extend and register it."""

    view_scope = Scope.READ_SCRIPTS
    page_scopes = {"again": Scope.RUN_SCRIPTS}
    change_form_template = "admin/run.html"
    fields = readonly_fields = ("id",)
    list_display = (
        "shown_start",
        "script",
        "status_label",
        "shown_error",
        "shown_response",
        "duration",
        "shown_attempt",
        "shown_trigger",
    )
    list_filter = (
        ("status", OutcomeFilter),
        ("script", ScopedAutocompleteFilter),
        ("trigger", TriggerFilter),
        SourceFilter,
        DeadLetterFilter,
        AttemptsFilter,
        RecentFilter,
        ("started_at", StartTimeFilter),
        ResponseFilter,
        ErrorFilter,
        PayloadFilter,
        SameErrorFilter,
    )
    list_before_template = "admin/run_searches.html"
    list_filter_submit = True
    list_select_related = ("script",)
    search_fields = ("id",)
    search_help_text = "First 8 digits of a run ID or more, event ID, or text of a recent error"
    ordering = ("-id",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RunChangeList

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Adds the organisation for superusers, who see all of them.

        Leaves errors out where the person reads none: they may quote payloads.
        """
        if is_superuser(request):
            started, *others = self.list_display
            return (started, "organisation", *others)
        if has_scope(request, Scope.READ_PAYLOADS):
            return self.list_display
        return tuple(each for each in self.list_display if each != "shown_error")

    def get_list_filter(self, request: HttpRequest) -> tuple[Any, ...]:
        filters: tuple[Any, ...] = self.list_filter
        if not self.has_wherever_visible(request, Scope.READ_PAYLOADS):
            filters = tuple(each for each in filters if each not in _FILTERS_OF_PAYLOADS)
        of_organisation = ("organisation", ScopedAutocompleteFilter)
        return (of_organisation, *filters) if is_superuser(request) else filters

    def payloads_readable(self, request: HttpRequest, runs: Any) -> set[uuid.UUID]:
        """The ids of those of the runs whose payloads the person reads."""
        if self.has_wherever_visible(request, Scope.READ_PAYLOADS):
            return {run.pk for run in runs}
        places = organisation_ids_with(request, Scope.READ_PAYLOADS)
        return {run.pk for run in runs if run.organisation_id in places}

    def get_list_select_related(self, request: HttpRequest) -> tuple[str, ...]:
        of_organisation = ("organisation",) if is_superuser(request) else ()
        return (*self.list_select_related, *of_organisation)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Finds runs by the first digits of their id, the only indexed text of a run.

        Other texts are searched in the newest runs, and by those alone who read payloads.
        """
        if not search_term:
            return queryset, False
        if (ids := ids_from_prefix(search_term)) is not None:
            by_id = queryset.filter(pk__range=ids)
            if by_id.exists():
                return by_id, False
        if not self.has_wherever_visible(request, Scope.READ_PAYLOADS):
            places = organisation_ids_with(request, Scope.READ_PAYLOADS)
            queryset = queryset.filter(organisation__in=places)
        return runs_about(cast("RunQuerySet", queryset), search_term.strip()), False

    @display(description="Started")
    def shown_start(self, run: Run) -> SafeString:
        return relative(run.started_at)

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
        return f"{run.duration_ms:.1f}\N{NO-BREAK SPACE}ms" if run.has_run else ""

    @display(description="Attempts")
    def shown_attempt(self, run: Run) -> SafeString | str:
        """How often the work was tried so far, which leads to all attempts."""
        if run.attempt is None or (run.attempt == 1 and run.is_dead_letter is None):
            return ""
        return link(f"{page_of(run)}#attempts", run.attempt) if run.attempt > 1 else "1"

    @display(description="Trigger")
    def shown_trigger(self, run: Any) -> str:
        trigger: str = run.trigger_name
        return trigger

    def page_context(self, request: HttpRequest, row: Run) -> dict[str, Any]:
        newer, older = Run.objects.newer_than(row), Run.objects.older_than(row)
        payload = row.payload_run()
        is_read = self.allows(request, Scope.READ_PAYLOADS, row)
        context = {
            "title": f"Run of {row.script}",
            "is_read": is_read,
            "run": row,
            "release": release_that_ran(row.script_version_id, row.started_at),
            "live": live_of(row.script),
            "has_caller": row.trigger in CALLED,
            "started_by": author_of(row.started_by, row.started_with, row.organisation_id)
            if row.started_by or row.started_with
            else "",
            "caller": callers_of([row]).get(row.pk),
            "status": status_label(row.status),
            "timeline": timeline_of(row) if row.has_run and is_read else None,
            "payload": payload,
            "error_hint": hint_of_error(row) if is_read else "",
            "request_body": body_of(
                payload.request_body if payload is not None and is_read else b""
            ),
            "response_body": body_of(row.response_body if is_read else b""),
            "logs": logs_of(row) if is_read else [],
            "source_lines": source_around(row) if is_read else [],
            "newer": newer and page_of(newer),
            "older": older and page_of(older),
            "show_history": False,
        }
        is_runnable = (
            row.script.deleted_at is None
            and row.script.organisation.is_active
            and payload is not None
            and payload.payload_removed_at is None
        )
        if is_runnable and self.allows(request, Scope.RUN_SCRIPTS, row):
            context["try_it"] = action_of(row.script, "change", run=row.pk)
            if row.attempt is None and row.trigger != Trigger.TEST:
                context["replay"] = Replay(action_of(row, "again"), _RUNS_NOW)
        context |= self.parts_of_page(request, row, is_runnable=is_runnable)
        return context

    def parts_of_page(self, request: HttpRequest, run: Run, *, is_runnable: bool) -> dict[str, Any]:
        """What apps above add to the page. ``is_runnable``: its payload can be run again."""
        return {}

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
        refusal = ""
        if run.payload_removed_at is not None:
            refusal = "This run's payload was removed."
        elif run.trigger == Trigger.TEST:
            refusal = "A test event is not replayed: send another one."
        elif run.script.current_version_id is None:
            refusal = "The script has no live version."
        if refusal:
            self.message_user(request, refusal, messages.ERROR)
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
        message = format_html("Replayed the payload of {}.", payload)
        if names := headers_left_out(run):
            message = format_html("{} Omitted, because not stored: {}.", message, ", ".join(names))
        self.message_user(request, message, messages.SUCCESS)
        return redirect(page_of(new))
