"""The pages of schedules: list with outcomes, form with the next ticks, Run now, delete."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Model, Prefetch, QuerySet
from django.forms.widgets import Script as ScriptFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from unfold.contrib.filters.admin import BooleanRadioFilter

from accounts.admin.reach import is_administrator, person
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import page_of
from core.http.origin import origin_of
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.admin.schedules.form import ScheduleForm
from scripts_engine.admin.schedules.preview import in_words, preview_of, rendered
from scripts_engine.admin.schedules.strip import LATEST, line_of, strip_of
from scripts_engine.flows.author import Author
from scripts_engine.flows.schedules.cron import MAX_CRON_CHARACTERS, known_time_zones
from scripts_engine.flows.schedules.long_runs import long_runs
from scripts_engine.flows.schedules.run_now import run_schedule_now
from scripts_engine.flows.schedules.schedules import delete_schedule
from scripts_engine.models import Schedule, ScheduleTick
from scripts_engine.not_run import NOT_RUN_ERRORS, why_not_run

_DELETE = Question(
    title="Delete schedule",
    consequences=(
        "It has no more ticks. Its queued runs still run, and its runs stay readable. To stop it "
        "for a while, disable it instead."
    ),
    button="Delete",
)
_RUN_NOW = Question(
    title="Run now",
    consequences=(
        "Queues a run with the schedule’s payload, even while another one has not ended. The "
        "schedule goes on as before."
    ),
    button="Run now",
)
_FIELDS = (
    "script",
    "name",
    ("cron", "time_zone"),
    "next_five",
    "is_enabled",
    "body",
    "overlap",
    ("catch_up", "catch_up_window_seconds"),
)


@admin.register(Schedule)
class ScheduleAdmin(DeletedByFlowModelAdmin):
    class Media:
        css: ClassVar = {"all": ("moonhook/schedules.css",)}
        js = (ScriptFile("moonhook/next_ticks.js", defer=True),)

    form = ScheduleForm
    empty_state = EmptyState(
        "A schedule runs a script at set times, for example every night.",
        "Add schedule",
        "admin:scripts_engine_schedule_add",
    )
    labels = {
        "catch_up": "Catch up",
        "catch_up_window_seconds": "Catch-up window (seconds)",
        "overlap": "While a run is in progress",
    }
    help_texts = {
        "script": "Runs at each tick, in the queue.",
        "name": "What it is for, for example “nightly report”.",
        "is_enabled": "Ticks while it is off are not made up for.",
        "overlap": (
            "Skip: the tick is left out. Buffer one: one tick waits until the run has ended. "
            "Allow all: runs overlap."
        ),
        "catch_up": "Which ticks run afterwards that were missed, for example during a downtime.",
        "catch_up_window_seconds": "Ticks that were missed longer ago do not run.",
    }
    change_form_outer_before_template = "admin/schedule_warnings.html"
    change_form_outer_after_template = "admin/schedule_page.html"
    list_display = ("__str__", "script", "when", "next_tick", "latest", "is_enabled")
    list_filter = (
        ("script", ScopedAutocompleteFilter),
        ("is_enabled", BooleanRadioFilter),
    )
    list_select_related = ("script", "organisation")
    sortable_by = ("script", "is_enabled")
    ordering = ("-created_at", "-id")
    search_fields = ("name", "script__name")
    search_help_text = "Name or script name"
    autocomplete_fields = ("script",)
    warn_unsaved_form = True
    actions_detail = ("run_now",)
    delete_question = _DELETE
    fieldsets = ((None, {"fields": _FIELDS}),)
    readonly_fields = ("next_five",)

    def delete_by_flow(self, request: HttpRequest, obj: Schedule) -> None:
        delete_schedule(obj, origin=origin_of(request), by=person(request))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.next_ticks_view))
        return [
            path("next-ticks/", view, name="scripts_engine_schedule_next_ticks"),
            *super().get_urls(),
        ]

    def next_ticks_view(self, request: HttpRequest) -> HttpResponse:
        """The next ticks of what is typed into the form: ``{ticks, problem}``, in words."""
        if not is_administrator(request):
            return JsonResponse({}, status=403)
        cron = request.GET.get("cron", "")[: MAX_CRON_CHARACTERS + 1]
        preview = preview_of(cron, request.GET.get("time_zone", ""))
        return JsonResponse(preview._asdict())

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        latest = ScheduleTick.objects.order_by("-tick_at")[:LATEST]
        return (
            rows.filter(script__deleted_at__isnull=True)
            .select_related("script__organisation", "organisation")
            .prefetch_related(Prefetch("ticks", latest, to_attr="latest_ticks"))
        )

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.origin, form.by = origin_of(request), person(request)
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return ["next_five"] if obj is None else ["next_five", "script"]

    def save_model(
        self, request: HttpRequest, obj: Schedule, form: forms.ModelForm[Schedule], change: bool
    ) -> None:
        """Does nothing: the form's flow has already saved the schedule."""

    @display(description="When")
    def when(self, schedule: Schedule) -> str:
        return f"{schedule.cron} ({schedule.time_zone})"

    @display(description="Next tick")
    def next_tick(self, schedule: Schedule) -> str:
        if schedule.next_tick_at is None or schedule.time_zone not in known_time_zones():
            return "None"
        return in_words(schedule.next_tick_at, schedule.time_zone)

    @display(description="Latest ticks")
    def latest(self, schedule: Any) -> SafeString | str:
        ticks: list[ScheduleTick] = schedule.latest_ticks
        return line_of(schedule, ticks) if ticks else "None yet"

    @display(description="Next ticks")
    def next_five(self, schedule: Schedule) -> SafeString:
        address = reverse("admin:scripts_engine_schedule_next_ticks")
        return rendered(preview_of(schedule.cron, schedule.time_zone), address)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        schedule: Schedule = self.get_or_404(request, object_id)
        context = {
            **(extra_context or {}),
            "strip": strip_of(schedule),
            "time_zone": schedule.time_zone,
            "long_runs": _warning(schedule),
            "is_waiting": schedule.buffered_tick_at is not None,
            "cannot_run": not (schedule.script.is_enabled and schedule.organisation.is_active),
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    @action(description="Run now", icon="play_arrow")
    def run_now(self, request: HttpRequest, object_id: str) -> HttpResponse:
        schedule: Schedule = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _RUN_NOW, [schedule])
        try:
            run = run_schedule_now(
                schedule, author=Author(user=person(request)), origin=origin_of(request)
            )
        except ValidationError as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
        except NOT_RUN_ERRORS as error:
            self.message_user(request, why_not_run(error).text, messages.ERROR)
        else:
            self.message_user(request, "The run is queued.", messages.SUCCESS)
            return redirect(page_of(run))
        return redirect(page_of(schedule))


def _warning(schedule: Schedule) -> str:
    """Whether runs outlast their interval; empty if they do not."""
    found = long_runs(schedule)
    if found is None:
        return ""
    minutes = found.longest.total_seconds() / 60
    return (
        f"Runs outlast their interval: {found.long} of the latest {found.ticks} took longer than "
        f"to the next tick, with all attempts and their time in the queue; the longest "
        f"{minutes:,.0f} minutes."
    )
