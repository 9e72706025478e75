"""Run pages, read-only. The list is ordered by primary key, so it stays fast at any size."""

import uuid
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.formats import date_format
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST
from unfold.views import ChangeList

from accounts.admin.reach import is_superuser, person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from core.admin.display import EmptyState, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, link, list_of, page_of
from core.http.bulkhead import place_left_to_others
from core.http.client_address import client_address
from core.http.origin import origin_of
from scripts_engine.admin.runs.bodies import body_of
from scripts_engine.admin.runs.filters import (
    YES,
    DeadLetterFilter,
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
    sender_of,
    source_around,
    timeline_of,
    trigger_of,
)
from scripts_engine.admin.runs.replays import (
    entries_of,
    page_of_replays,
    progress_of,
    replays_of,
    what_was_cancelled,
)
from scripts_engine.admin.runs.searching import (
    ErrorFilter,
    PayloadFilter,
    ResponseFilter,
    SameErrorFilter,
)
from scripts_engine.admin.runs.statuses import COLOURS, status_label
from scripts_engine.admin.runs.story import story_of
from scripts_engine.flows.author import Author
from scripts_engine.flows.queue.room import QueueFullError
from scripts_engine.flows.queue.steer import (
    MAX_REPLAYS,
    NotQueuedError,
    NotReplayableError,
    cancel_entries,
    cancel_run,
    dismiss_dead_letters,
    replay_runs,
)
from scripts_engine.flows.try_script import headers_left_out, run_again
from scripts_engine.models import QueueEntry, Run, RunStatus
from scripts_engine.models.run import FAILURES, RunQuerySet
from scripts_engine.not_run import NOT_RUN_ERRORS, why_not_run


def why_not_replayed(error: NotReplayableError | QueueFullError) -> str:
    if isinstance(error, QueueFullError):
        return why_not_run(error).text
    return f"Nothing was replayed. {error}"


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


class RunChangeList(ChangeList):
    """Loads no payloads and logs, which the list does not show, and errors of failed runs only."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Run]:
        rows: QuerySet[Run] = super().get_queryset(request, exclude_parameters)
        return rows.defer(*_DEFERRED_FIELDS)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        failed = [run.pk for run in self.result_list if run.status in FAILURES]
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
        DeadLetterFilter,
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
    actions = ("replay_selected", "dismiss_selected")

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Only dead letters are replayed and dismissed in numbers."""
        if request.GET.get(DeadLetterFilter.parameter_name) != YES:
            return {}
        found = (self.get_action(name) for name in ("replay_selected", "dismiss_selected"))
        return {each[1]: each for each in found if each is not None}

    @admin.action(description="Replay selected dead letters")
    def replay_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        runs = self._some(request, queryset)
        if not runs:
            return None
        replays: list[uuid.UUID] = []
        by_organisation: dict[uuid.UUID, list[Run]] = {}
        for run in runs:
            by_organisation.setdefault(run.organisation_id, []).append(run)
        author = Author(user=person(request))
        try:
            with transaction.atomic():
                for found in by_organisation.values():
                    replays += replay_runs(
                        found, author=author, origin=origin_of(request), are_dead_letters=True
                    )
        except (NotReplayableError, QueueFullError) as error:
            self.message_user(request, why_not_replayed(error), messages.ERROR)
            return None
        return redirect(page_of_replays(replays))

    @admin.action(description="Dismiss selected dead letters")
    def dismiss_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        runs = self._some(request, queryset)
        if runs is not None:
            dismissed = dismiss_dead_letters(runs, origin=origin_of(request))
            self.message_user(request, f"Dismissed {dismissed} dead letters.", messages.SUCCESS)

    def _some(self, request: HttpRequest, queryset: QuerySet[Run]) -> list[Run] | None:
        """The selected dead letters, the oldest first.

        ``None``, with a message, if they are too many at once.
        """
        runs = list(queryset.filter(is_dead_letter=True).order_by("pk")[: MAX_REPLAYS + 1])
        if len(runs) <= MAX_REPLAYS:
            return runs
        text = f"More than {MAX_REPLAYS:,} runs are selected. Nothing was done; select fewer."
        self.message_user(request, text, messages.ERROR)
        return None

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
        return f"{run.duration_ms:.1f}\N{NO-BREAK SPACE}ms" if run.has_run else ""

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
        payload = run.payload_run()
        context = {
            **(extra_context or {}),
            "title": f"Run of {run.script}",
            "run": run,
            "status": status_label(run.status),
            "sender": sender_of(run),
            "timeline": timeline_of(run) if run.has_run else None,
            "story": story_of(run),
            "payload": payload,
            "error_hint": hint_of_error(run),
            "request_body": body_of(b"" if payload is None else payload.request_body),
            "response_body": body_of(run.response_body),
            "logs": logs_of(run),
            "source_lines": source_around(run),
            "newer": newer and page_of(newer),
            "older": older and page_of(older),
            "show_history": False,
        }
        is_callable = run.script.deleted_at is None and run.script.organisation.is_active
        has_payload = payload is not None and payload.payload_removed_at is None
        if run.status == RunStatus.QUEUED:
            context["cancel"] = action_of(run, "cancel")
        elif is_callable and has_payload and run.attempt is not None and run.has_ended:
            context["replay"] = action_of(run, "replay")
        if is_callable and has_payload:
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
        steering = [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(view),
                name=f"scripts_engine_run_{name}",
            )
            for name, view in {"cancel": self.cancel, "replay": self.replay}.items()
        ]
        followed = [
            path(
                f"{address}/",
                self.admin_site.admin_view(view),
                name=f"scripts_engine_run_{name}",
            )
            for address, name, view in (
                ("replays", "replays", require_GET(self.replays)),
                ("replays/progress", "replays_progress", require_GET(self.replays_progress)),
                ("replays/cancel", "replays_cancel", require_POST(self.cancel_replays)),
            )
        ]
        return [*followed, again, *steering, *super().get_urls()]

    def replays(self, request: HttpRequest) -> HttpResponse:
        """Shows how far the person's replays are, from the ``first`` to the ``last`` one."""
        progress = progress_of(self._replays(request))
        first_and_last = request.GET.urlencode()
        return TemplateResponse(
            request,
            "admin/replays.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": "Replays",
                "progress": progress,
                "progress_address": f"{list_of(Run, 'replays_progress')}?{first_and_last}",
                "cancel": f"{list_of(Run, 'replays_cancel')}?{first_and_last}",
                "queue": list_of(QueueEntry),
                "dead_letters": list_of(Run, dead_letter=YES),
            },
        )

    def replays_progress(self, request: HttpRequest) -> HttpResponse:
        """The same as JSON: ``{ended, text, parts: [{kind, start, width}]}``."""
        progress = progress_of(self._replays(request))
        parts = [part._asdict() for part in progress.parts]
        response = JsonResponse({"ended": progress.ended, "text": progress.text, "parts": parts})
        response["Cache-Control"] = "no-store"
        return response

    def cancel_replays(self, request: HttpRequest) -> HttpResponse:
        """Takes those that wait, or wait to be tried again, out of the queue. POST only."""
        waiting = entries_of(self._replays(request))
        cancelled, others = cancel_entries(waiting, origin=origin_of(request))
        self.message_user(request, *what_was_cancelled(cancelled, others))
        return redirect(f"{list_of(Run, 'replays')}?{request.GET.urlencode()}")

    def _replays(self, request: HttpRequest) -> RunQuerySet:
        if not self.has_module_permission(request):
            raise PermissionDenied
        return replays_of(request, cast("RunQuerySet", self.get_queryset(request)))

    def cancel(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Takes a waiting run out of the queue. POST only."""
        run: Run = self.get_or_404(request, object_id)
        if request.method == "POST":
            try:
                cancel_run(run, origin=origin_of(request))
            except NotQueuedError:
                self.message_user(request, "The run does not wait any more.", messages.ERROR)
            else:
                self.message_user(request, "The run is cancelled.", messages.SUCCESS)
        return redirect(page_of(run))

    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Queues the payload of an ended run again, and shows the new run. POST only."""
        run: Run = self.get_or_404(request, object_id)
        if request.method == "POST":
            author = Author(user=person(request))
            try:
                (run_id,) = replay_runs([run], author=author, origin=origin_of(request))
            except (NotReplayableError, QueueFullError) as error:
                self.message_user(request, why_not_replayed(error), messages.ERROR)
            else:
                self.message_user(request, "The payload is queued again.", messages.SUCCESS)
                return redirect(page_of(Run(pk=run_id)))
        return redirect(page_of(run))

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
