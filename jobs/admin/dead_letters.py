"""Dead letters in numbers: replayed and dismissed by selection, or all of a script and error."""

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, cast

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path

from accounts.admin.reach import is_superuser, organisation_ids_with, person
from accounts.scopes import Scope
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState
from core.admin.links import list_of, page_of
from core.database.ids import parse_uuid
from core.http.origin import origin_of
from jobs.queue.queue_limit import QueueFullError
from jobs.queue.replay import (
    MAX_REPLAYS,
    NotReplayableError,
    dismiss_dead_letters,
    replay_runs,
    with_payload,
)
from scripts_engine.admin.runs.filters import YES, DeadLetterFilter
from scripts_engine.admin.runs.page import RunAdmin
from scripts_engine.admin.runs.presentation import error_of
from scripts_engine.failures import (
    NEWEST_FAILURES,
    FailureGroup,
    error_kind_of,
    failure_groups,
    failures_like,
)
from scripts_engine.models import Run
from scripts_engine.models.run import RunQuerySet
from scripts_engine.runs.problems import why_not_run
from scripts_engine.runs.spec import Author

MAX_GROUPS = 10
LIKE = "like"
_UNFILTERED = {DeadLetterFilter.parameter_name, "p"}


def why_not_replayed(error: NotReplayableError | QueueFullError) -> str:
    if isinstance(error, QueueFullError):
        return why_not_run(error).text
    return f"Nothing was replayed. {error}"


def number_of_letters(number: int) -> str:
    return f"{number:,} dead letter{'' if number == 1 else 's'}"


def page_of_replays(run_ids: Sequence[uuid.UUID]) -> str:
    """The address of the page that watches these replays, queued by one person in this order."""
    return list_of(Run, "replays", first=run_ids[0], last=run_ids[-1])


class Group(NamedTuple):
    """Dead letters of one script with one error."""

    letters: int
    script: str
    script_page: str
    organisation: str
    error: str
    newest: Run
    newest_page: str
    listed: str
    """The list of these alone."""
    replay_all: str
    dismiss_all: str


class DeadLetterAdmin(RunAdmin):
    page_scopes = {
        **RunAdmin.page_scopes,
        **dict.fromkeys(("replay_all", "dismiss_all"), Scope.OPERATE_QUEUE),
    }
    filtered_empty_states = {
        "Dead letters": EmptyState(
            "No accepted work has failed for good. Work whose last attempt failed appears here "
            "until it is replayed or dismissed.",
            title="No dead letters",
        )
    }
    action_scopes = dict.fromkeys(("replay_selected", "dismiss_selected"), Scope.OPERATE_QUEUE)
    actions = ("replay_selected", "dismiss_selected")
    list_before_template = "admin/runs.html"

    class Media:
        css: ClassVar = {"all": ("moonhook/queue.css",)}

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Only dead letters are replayed and dismissed in numbers."""
        if request.GET.get(DeadLetterFilter.parameter_name) != YES:
            return {}
        found = (self.get_action(name) for name in ("replay_selected", "dismiss_selected"))
        return {each[1]: each for each in found if each is not None}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {**(extra_context or {}), **self._groups(request)}
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def get_urls(self) -> list[URLPattern]:
        of_groups = [
            path(
                f"{address}/",
                self.admin_site.admin_view(view),
                name=f"scripts_engine_run_{name}",
            )
            for address, name, view in (
                ("replay-all", "replay_all", self.replay_all),
                ("dismiss-all", "dismiss_all", self.dismiss_all),
            )
        ]
        return [*of_groups, *super().get_urls()]

    # --- By selection -----------------------------------------------------------------------------

    @admin.action(description="Replay selected dead letters")
    def replay_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        runs = self._some(request, queryset)
        return self._replay(request, runs) if runs else None

    @admin.action(description="Dismiss selected dead letters")
    def dismiss_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        runs = self._some(request, queryset)
        if runs is not None:
            self._dismiss(request, runs)

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

    def _replay(self, request: HttpRequest, runs: list[Run]) -> HttpResponse | None:
        """Leads to the page that follows the replays; ``None``, with a message, if none is."""
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

    def _dismiss(self, request: HttpRequest, runs: list[Run]) -> None:
        dismissed = dismiss_dead_letters(runs, origin=origin_of(request))
        text = f"Dismissed {number_of_letters(dismissed)}."
        self.message_user(request, text, messages.SUCCESS)

    # --- All of a script and error ----------------------------------------------------------------

    def _groups(self, request: HttpRequest) -> dict[str, Any]:
        """The most frequent errors, on the list of all dead letters."""
        query = request.GET
        is_of_all = query.get(DeadLetterFilter.parameter_name) == YES and set(query) <= _UNFILTERED
        if not is_of_all or not self.opens(request, Scope.OPERATE_QUEUE):
            return {}
        found = failure_groups(self._steered(request), MAX_GROUPS)
        with_organisation = is_superuser(request)
        return {
            "dead_letters": [_group(each, with_organisation) for each in found.groups],
            "are_dead_letters_cut": found.is_cut,
            "counted_dead_letters": NEWEST_FAILURES,
        }

    def _steered(self, request: HttpRequest) -> RunQuerySet:
        """The dead letters that the person may settle, and whose errors they read."""
        rows = cast("RunQuerySet", self.rows_with(request, Scope.OPERATE_QUEUE))
        if not self.has_wherever_visible(request, Scope.READ_PAYLOADS):
            readable = organisation_ids_with(request, Scope.READ_PAYLOADS)
            rows = rows.filter(organisation__in=readable)
        return rows.dead_letters()

    def replay_all(self, request: HttpRequest) -> HttpResponse:
        """Asks first. Dead letters whose payload was removed stay."""
        found = self._all_like(request)
        if found is None:
            return redirect(_list())
        sample, runs = found
        kept = list(with_payload(runs))
        if not kept:
            text = "Nothing was replayed: the payloads of these runs were removed."
            self.message_user(request, text, messages.ERROR)
            return redirect(_list())
        if not is_confirmed(request):
            return ask(self, request, _replay_question(sample, len(kept), runs.count()), [])
        return self._replay(request, kept) or redirect(_list())

    def dismiss_all(self, request: HttpRequest) -> HttpResponse:
        """Asks first."""
        found = self._all_like(request)
        if found is None:
            return redirect(_list())
        sample, runs = found
        if not is_confirmed(request):
            return ask(self, request, _dismiss_question(sample, runs.count()), [])
        self._dismiss(request, list(runs))
        return redirect(_list())

    def _all_like(self, request: HttpRequest) -> tuple[Run, RunQuerySet] | None:
        """The dead letter that the address names, and all before it with its script and error.

        The oldest first, at most ``MAX_REPLAYS``. ``None``, with a message, if it was settled.
        Raises ``Http404`` if the person may not settle it.
        """
        if set(request.GET) != {LIKE}:
            raise Http404
        run_id = parse_uuid(request.GET[LIKE])
        if run_id is None:
            raise Http404
        rows = cast("RunQuerySet", self.rows_with(request, Scope.OPERATE_QUEUE))
        columns = ("organisation", "status", "error_message", "error_line", "is_dead_letter")
        sample = rows.select_related("script").only(*columns, "script__name").filter(pk=run_id)
        run = sample.first()
        if run is None:
            raise Http404
        kind = error_kind_of(run.script_id, run.status, run.error_message)
        steered = self._steered(request).filter(organisation=run.organisation_id)
        # Not what arrived since: nobody has seen it.
        steered = steered.filter(pk__lte=run.pk)
        ids = failures_like(steered, kind) if run.is_dead_letter else []
        if not ids:
            text = "These dead letters were replayed or dismissed meanwhile."
            self.message_user(request, text, messages.WARNING)
            return None
        runs = Run.objects.filter(pk__in=ids[:MAX_REPLAYS]).only("organisation", "first_run")
        return run, runs.order_by("pk")


def _group(found: FailureGroup, with_organisation: bool) -> Group:
    run = found.last
    return Group(
        letters=found.failures,
        script=run.script.name,
        script_page=page_of(run.script),
        organisation=run.script.organisation.name if with_organisation else "",
        error=error_of(run),
        newest=run,
        newest_page=page_of(run),
        listed=list_of(Run, dead_letter=YES, same_error_as=run.pk),
        replay_all=list_of(Run, "replay_all", like=run.pk),
        dismiss_all=list_of(Run, "dismiss_all", like=run.pk),
    )


def _list() -> str:
    return list_of(Run, dead_letter=YES)


def _named(run: Run) -> str:
    return f"of “{run.script}” that failed with “{error_of(run)}”"


def _replay_question(run: Run, replayed: int, found: int) -> Question:
    left = found - replayed
    return Question(
        title=f"Replay {number_of_letters(replayed)}",
        consequences=(
            f"Queues the payloads of {number_of_letters(replayed)} {_named(run)} for the versions "
            "that would run now, the oldest first, all or none. They are then settled."
        ),
        button="Replay all",
        variant="primary",
        warning=(
            f"{number_of_letters(left)} stay{'s' if left == 1 else ''}: the payload was removed."
            if left
            else ""
        ),
    )


def _dismiss_question(run: Run, found: int) -> Question:
    return Question(
        title=f"Dismiss {number_of_letters(found)}",
        consequences=(
            f"Takes {number_of_letters(found)} {_named(run)} off the list. Nothing runs, and the "
            "runs themselves are kept."
        ),
        button="Dismiss all",
    )
