"""The queue: how much waits and runs per organisation, the runs themselves, pause and resume."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.forms.widgets import Script as ScriptFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from unfold.views import ChangeList

from accounts.admin.reach import organisations_with
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin.display import EmptyState, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import link, list_of, page_of
from core.admin.times import relative
from core.database.ids import short_id
from core.http.origin import origin_of
from jobs.admin.runs import what_was_cancelled
from jobs.models import PausedQueue, QueueEntry
from jobs.queue.cancel import cancel_entries
from jobs.queue.pause import pause_organisation, pause_script, resume_organisation, resume_script
from scripts_engine.admin.runs.presentation import status_label
from scripts_engine.models import Run, RunStatus, Script

# Organisations and scripts that the page shows.
MAX_SHOWN = 50


class Share(NamedTuple):
    """What an organisation has in the queue."""

    organisation: Organisation
    waiting: int
    running: int
    oldest: str
    """How long its oldest due run has waited; empty if nothing is due."""
    is_paused: bool


class QueueChangeList(ChangeList):
    """Tells what its rows show, so that the page replaces them when it changes."""

    result_list: Any
    state: str

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        now = timezone.now()
        # Without the times, which change with every second.
        self.state = ";".join(
            f"{entry.pk} {entry.attempt} {entry.lease_id is not None} {entry.due_at <= now}"
            for entry in self.result_list
        )


@admin.register(QueueEntry)
class QueueEntryAdmin(ReadOnlyTenantModelAdmin):
    class Media:
        css: ClassVar = {"all": ("moonhook/queue.css",)}
        js = (ScriptFile("moonhook/live.js", defer=True),)

    empty_state = EmptyState(
        "Nothing waits. Accepted calls, pushes of scripts, replays and schedules' ticks appear "
        "here until their runs have ended."
    )
    view_scope = Scope.READ_SCRIPTS
    page_scopes = {"steer": Scope.OPERATE_QUEUE}
    action_scopes = {"cancel_selected": Scope.OPERATE_QUEUE}
    list_before_template = "admin/queue.html"
    list_display = ("due", "shown_run", "script", "organisation", "shown_attempt", "shown_status")
    list_display_links = ("due",)
    fields = readonly_fields = (
        "shown_run",
        "script",
        "organisation",
        "due_at",
        "shown_attempt",
        "shown_status",
    )
    list_filter = (("script", ScopedAutocompleteFilter),)
    list_select_related = ("script", "organisation")
    ordering = ("due_at", "run_id")
    sortable_by = ()
    actions = ("cancel_selected",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return QueueChangeList

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Reading is all that others do on read-only pages; here runs can be cancelled."""
        found = self.get_action("cancel_selected")
        return {} if found is None else {found[1]: found}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            **(extra_context or {}),
            "shares": shares_of(organisations_with(request, Scope.READ_SCRIPTS)),
            "paused_scripts": paused_scripts(organisations_with(request, Scope.READ_SCRIPTS)),
            "steered": set(
                organisations_with(request, Scope.OPERATE_QUEUE).values_list("pk", flat=True)
            ),
            "steer": reverse("admin:jobs_queueentry_steer"),
            "dead_letters": list_of(Run, dead_letter="yes"),
        }
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def get_urls(self) -> list[URLPattern]:
        steer = self.admin_site.admin_view(self.steer)
        return [
            path("steer/", steer, name="jobs_queueentry_steer"),
            *super().get_urls(),
        ]

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """Leads to the run, which stays when it has left the queue."""
        run = self.admin_site.get_model_admin(Run).get_object(request, unquote(object_id))
        if run is None:
            raise Http404
        return redirect(page_of(run))

    def steer(self, request: HttpRequest) -> HttpResponse:
        """Pauses or resumes the queue of an organisation or a script. POST only."""
        if not self.has_module_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            found = _find(request)
            if found is None:
                self.message_user(request, "There is nothing to pause.", messages.ERROR)
            else:
                done = _pause_or_resume(request, found)
                self.message_user(request, f"{done} the queue of {found}.", messages.SUCCESS)
        return redirect(list_of(QueueEntry))

    @admin.action(description="Cancel selected runs")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[QueueEntry]) -> None:
        cancelled, others = cancel_entries(queryset, origin=origin_of(request))
        self.message_user(request, *what_was_cancelled(cancelled, others))

    @display(description="Due")
    def due(self, entry: QueueEntry) -> SafeString | str:
        return relative(entry.due_at) if entry.lease_id is None else "started"

    @display(description="Run")
    def shown_run(self, entry: QueueEntry) -> str:
        return link(page_of(Run(pk=entry.pk)), short_id(entry.pk))

    @display(description="Attempt")
    def shown_attempt(self, entry: QueueEntry) -> str:
        return f"{entry.attempt} of {entry.max_attempts}"

    @display(description="Status")
    def shown_status(self, entry: QueueEntry) -> str:
        is_running = entry.lease_id is not None
        return status_label(RunStatus.RUNNING if is_running else RunStatus.QUEUED)


def shares_of(organisations: QuerySet[Organisation]) -> list[Share]:
    """The organisations with something in the queue, or with a paused one."""
    entries = QueueEntry.objects.filter(organisation=OuterRef("pk"))
    paused = PausedQueue.objects.filter(organisation=OuterRef("pk"))
    found = organisations.annotate(is_paused=Exists(paused)).filter(
        Exists(entries) | Q(is_paused=True)
    )
    shown = list(found.order_by("name", "pk")[:MAX_SHOWN])
    counted, now = _counted([each.pk for each in shown]), timezone.now()
    shares = []
    for each in shown:
        waiting, running, oldest = counted.get(each.pk, (0, 0, None))
        age = "" if oldest is None else timesince(oldest, now)
        shares.append(Share(each, waiting, running, age, each.is_paused))
    return shares


def _counted(organisation_ids: Sequence[UUID]) -> dict[UUID, tuple[int, int, datetime | None]]:
    """By organisation: how many runs wait and run, and since when the oldest is due.

    None has more than ``QUEUE_MAX_WAITING`` and a few.
    """
    waits = Q(lease_id__isnull=True)
    is_due = waits & Q(due_at__lte=timezone.now())
    rows = (
        QueueEntry.objects.filter(organisation__in=organisation_ids)
        .order_by()
        .values_list("organisation")
        .annotate(
            waiting=Count("pk", filter=waits),
            running=Count("pk", filter=~waits),
            oldest=Min("due_at", filter=is_due),
        )
    )
    return {organisation: (waiting, running, at) for organisation, waiting, running, at in rows}


def paused_scripts(organisations: QuerySet[Organisation]) -> QuerySet[Script]:
    paused = Script.objects.existing().filter(queue_paused_at__isnull=False)
    return paused.filter(organisation__in=organisations).order_by("name")[:MAX_SHOWN]


def _find(request: HttpRequest) -> Organisation | Script | None:
    """What the form names, if it is within the person's reach."""
    organisations = organisations_with(request, Scope.OPERATE_QUEUE)
    try:
        if "script" in request.POST:
            scripts = Script.objects.existing().filter(organisation__in=organisations)
            return scripts.filter(pk=UUID(request.POST["script"])).first()
        return organisations.filter(pk=UUID(request.POST.get("organisation", ""))).first()
    except ValueError:
        return None


def _pause_or_resume(request: HttpRequest, found: Organisation | Script) -> str:
    origin, resumes = origin_of(request), "resume" in request.POST
    if isinstance(found, Script):
        (resume_script if resumes else pause_script)(found, origin=origin)
    else:
        (resume_organisation if resumes else pause_organisation)(found, origin=origin)
    return "Resumed" if resumes else "Paused"
