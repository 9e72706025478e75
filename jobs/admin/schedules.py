"""The pages of schedules: list with outcomes, form with the next ticks, Run now, delete."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model, Prefetch, QuerySet
from django.forms.widgets import Script as ScriptFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.views import ChangeList
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.admin.reach import person
from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.flow_forms import add_errors
from core.admin.links import link_to, list_of
from core.admin.panels import Link, PageContext, Panel, panel_of
from core.admin.times import relative
from core.errors import NotFoundError
from core.http.origin import origin_of
from jobs.admin.runs import show_started_run
from jobs.admin.ticks import (
    LATEST,
    in_words,
    line_of,
    preview_of,
    rendered,
    sentence_of,
    strip_of,
)
from jobs.models import Schedule, ScheduleTick
from jobs.schedules.cron import MAX_CRON_CHARACTERS, InvalidCronError, known_time_zones
from jobs.schedules.saving import MAX_PAYLOAD_BYTES
from jobs.schedules.schedules import (
    create_schedule,
    delete_schedules,
    long_runs,
    run_schedule_now,
    update_schedule,
)
from scripts_engine.admin.activity import newest_cell
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.admin.panels import enabled_label
from scripts_engine.models import Run, Script
from scripts_engine.runs.spec import Author


def _time_zones() -> list[tuple[str, str]]:
    return [(name, name) for name in ("UTC", *sorted(known_time_zones() - {"UTC"}))]


class ScheduleForm(forms.ModelForm[Schedule]):
    """A schedule's settings; the payload is entered as text."""

    cron = forms.CharField(
        widget=UnfoldAdminTextInputWidget(
            attrs={"placeholder": "0 6 * * MON-FRI", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=(
            "Minute, hour, day of month, month, day of week. L is the month’s last day, MON#2 its "
            "second Monday, 5L its last Friday. Also @hourly, @daily, @weekly, @monthly and "
            "@yearly."
        ),
    )
    time_zone = forms.ChoiceField(
        choices=_time_zones,
        initial="UTC",
        widget=UnfoldAdminSelectWidget,
        help_text="Cron times are in this time zone; daylight saving time is applied.",
    )
    # The column holds bytes, which forms of models leave out.
    body = forms.CharField(
        label="Payload",
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            attrs={"rows": 4, "class": "source-code", "spellcheck": "false"}
        ),
        help_text=f'params.get("body") of each run; at most {MAX_PAYLOAD_BYTES // 1024} KiB.',
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding and "name" in self.fields:
            # Without one, it gets the script's.
            self.fields["name"].required = False
        self.initial["body"] = bytes(self.instance.payload).decode("utf-8", "replace")

    def values(self) -> dict[str, Any]:
        """The values as ``create_schedule`` and ``update_schedule`` take them."""
        values = {name: value for name, value in self.cleaned_data.items() if name != "body"}
        # Browsers send line ends of their own.
        typed = self.cleaned_data["body"].replace("\r\n", "\n")
        return {**values, "payload": typed.encode("utf-8", "replace")}


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


class ScheduleChangeList(ChangeList):
    """Reads the last run of the listed schedules only."""

    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        schedules = list(self.result_list)
        ran = {each.pk: _last_run_id(each.latest_ticks) for each in schedules}
        ids = [run_id for run_id in ran.values() if run_id is not None]
        runs = Run.objects.only("status", "started_at").in_bulk(ids)
        for schedule in schedules:
            schedule.last_run = runs.get(ran[schedule.pk])
        self.result_list = schedules


def _last_run_id(ticks: list[ScheduleTick]) -> UUID | None:
    """Of the ticks with the newest first."""
    return next((tick.run_id for tick in ticks if tick.run_id is not None), None)


@admin.register(Schedule)
class ScheduleAdmin(PageContext, DeletedByFlowModelAdmin):
    class Media:
        css: ClassVar = {"all": ("moonhook/schedules.css",)}
        js = (ScriptFile("moonhook/next_ticks.js", defer=True),)

    view_scope = Scope.READ_SCRIPTS
    change_scope = Scope.WRITE_HOOKS
    page_scopes = {"run_now": Scope.OPERATE_QUEUE, "next_ticks": Scope.READ_SCRIPTS}
    action_scopes = {"delete_selected_by_flow": Scope.WRITE_HOOKS}
    form = ScheduleForm
    refusals = (ValidationError, NotFoundError)
    empty_state = EmptyState(
        "A schedule runs a script at set times, for example every night.",
        "Add schedule",
        "admin:jobs_schedule_add",
    )
    labels = {
        "body": "Payload",
        "catch_up": "Catch up",
        "catch_up_window_seconds": "Catch-up window (seconds)",
        "overlap": "While a run is in progress",
    }
    help_texts = {
        "script": "Runs at each tick, in the queue.",
        "name": "What it is for, for example “nightly report”.",
        "is_enabled": "Runs missed while it is off are not caught up.",
        "overlap": (
            "Skip: the tick is left out. Buffer one: one tick waits until the run has ended. "
            "Allow all: runs overlap."
        ),
        "catch_up": "Which ticks run afterwards that were missed, for example during a downtime.",
        "catch_up_window_seconds": "Ticks that were missed longer ago do not run.",
    }
    change_form_outer_before_template = "admin/schedule_warnings.html"
    change_form_outer_after_template = "admin/schedule_page.html"
    list_display = ("__str__", "script", "when", "next_tick", "last_run", "latest", "is_enabled")
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

    def delete_by_flow(
        self, request: HttpRequest, organisation: Organisation, rows: Sequence[Schedule]
    ) -> None:
        delete_schedules(rows, origin=origin_of(request))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.next_ticks_view))
        return [
            path("next-ticks/", view, name="jobs_schedule_next_ticks"),
            *super().get_urls(),
        ]

    def next_ticks_view(self, request: HttpRequest) -> HttpResponse:
        """The next ticks of what is typed into the form: ``{ticks, problem}``, in words."""
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

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return ["next_five"] if obj is None else ["next_five", "script"]

    def save_by_flow(self, request: HttpRequest, form: ScheduleForm, change: bool) -> Schedule:
        values, origin = form.values(), origin_of(request)
        if change:
            return update_schedule(form.instance, origin=origin, **values)
        return create_schedule(values.pop("script"), origin=origin, **values)

    def show_refusal(self, form: ScheduleForm, refusal: ValidationError) -> None:
        add_errors(form, refusal, {"payload": "body"})

    @display(description="When")
    def when(self, schedule: Schedule) -> SafeString:
        return _when(schedule)

    @display(description="Next tick")
    def next_tick(self, schedule: Schedule) -> SafeString | str:
        if schedule.next_tick_at is None or schedule.time_zone not in known_time_zones():
            return "None"
        title = in_words(schedule.next_tick_at, schedule.time_zone)
        return relative(schedule.next_tick_at, title=title)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ScheduleChangeList

    @display(description="Last run")
    def last_run(self, schedule: Any) -> SafeString | str:
        return newest_cell(schedule.last_run, "None recorded")

    @display(description="Latest ticks")
    def latest(self, schedule: Any) -> SafeString | str:
        ticks: list[ScheduleTick] = schedule.latest_ticks
        return line_of(schedule, ticks) if ticks else "None yet"

    @display(description="Next runs")
    def next_five(self, schedule: Schedule) -> SafeString:
        address = reverse("admin:jobs_schedule_next_ticks")
        return rendered(preview_of(schedule.cron, schedule.time_zone), address)

    def page_context(self, request: HttpRequest, row: Schedule) -> dict[str, Any]:
        return {
            "strip": strip_of(row),
            "time_zone": row.time_zone,
            "long_runs": _warning(row),
            "is_waiting": row.buffered_tick_at is not None,
            "cannot_run": not row.script.can_run,
        }

    @action(description="Run now", icon="play_arrow")
    def run_now(self, request: HttpRequest, object_id: str) -> HttpResponse:
        schedule: Schedule = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _RUN_NOW, [schedule])
        author, origin = Author(user=person(request)), origin_of(request)
        start = partial(run_schedule_now, schedule, author=author, origin=origin)
        return show_started_run(self, request, schedule, start, "The run is queued.")


def _when(schedule: Schedule) -> SafeString:
    try:
        sentence = sentence_of(schedule.cron, schedule.time_zone)
    except InvalidCronError:
        sentence = f"{schedule.cron} ({schedule.time_zone})"
    return format_html('<span title="{}">{}</span>', schedule.cron, sentence)


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


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=2)
def schedules_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.is_library:
        return None
    return Panel(
        title="Schedules",
        headers=("Name", "When", "Next tick (UTC)", "State"),
        rows=[
            (
                link_to(schedule),
                _when(schedule),
                schedule.next_tick_at or "None",
                enabled_label(schedule.is_enabled),
            )
            for schedule in script.schedules.all()
        ],
        empty="No schedules. Add one to run the script at set times.",
        links=(
            Link("Add schedule", list_of(Schedule, "add", script=script.pk), Scope.WRITE_HOOKS),
        ),
    )
