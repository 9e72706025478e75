"""Ticks of a schedule: the next ones in words, the latest as coloured squares."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from jobs.models import Schedule, ScheduleTick, TickOutcome
from jobs.schedules.cron import (
    InvalidCronError,
    UnknownTimeZoneError,
    cron_in_words,
    known_time_zones,
    next_ticks,
)
from scripts_engine.models import Run

_SHOWN = 5


PRESETS = {
    "Every 15 minutes": "*/15 * * * *",
    "Every hour": "0 * * * *",
    "Every day": "0 6 * * *",
    "Weekdays": "0 6 * * MON-FRI",
    "Every Monday": "0 6 * * MON",
    "First of the month": "0 6 1 * *",
}
"""Expressions to begin with, by what their buttons say."""


class Preview(NamedTuple):
    """The schedule in a sentence and its next ticks in words, or why there are none."""

    ticks: list[str]
    sentence: str = ""
    problem: str = ""


def preview_of(cron: str, time_zone: str) -> Preview:
    if not cron.strip():
        return Preview([], problem="Enter five fields above to see the next runs.")
    try:
        ticks = next_ticks(cron, time_zone, timezone.now(), _SHOWN)
    except (InvalidCronError, UnknownTimeZoneError) as error:
        return Preview([], problem=str(error))
    return Preview([in_words(tick, time_zone) for tick in ticks], sentence_of(cron, time_zone))


def sentence_of(cron: str, time_zone: str) -> str:
    """For example “At 06:00 on Monday through Friday (Europe/Berlin)”. Raises InvalidCronError."""
    return f"{cron_in_words(cron)} ({time_zone})"


def in_words(tick: datetime, time_zone: str) -> str:
    """For example “Mon 23 Nov 2026, 06:00 CET (05:00 UTC)”."""
    local = tick.astimezone(ZoneInfo(time_zone))
    if local.utcoffset() == tick.astimezone(UTC).utcoffset():
        return f"{local:%a %d %b %Y, %H:%M} UTC"
    return f"{local:%a %d %b %Y, %H:%M %Z} ({tick.astimezone(UTC):%H:%M} UTC)"


def rendered(preview: Preview, address: str) -> SafeString:
    """The list for the form, which a script renews from ``address``."""
    context = {"preview": preview, "address": address, "presets": PRESETS}
    return SafeString(render_to_string("admin/parts/next_ticks.html", context).strip())


# --- The latest, a line in lists and a calendar on the page ---------------------------------------

# In the list of schedules.
LATEST = 10
_MARKS = {
    TickOutcome.RAN.value: "✓",
    TickOutcome.LATE.value: "◷",
    TickOutcome.SKIPPED_OVERLAP.value: "–",
    TickOutcome.SKIPPED_MISSED.value: "×",
}


class Square(NamedTuple):
    at: datetime
    outcome: str
    mark: str
    title: str
    address: str
    """The page of its run; empty without one."""


class Day(NamedTuple):
    title: str
    squares: list[Square]


class Strip(NamedTuple):
    days: list[Day]
    """The newest first; each with its ticks in their order."""
    legend: list[tuple[str, str, str, int]]
    """Outcome, mark, name, and number of ticks."""


def strip_of(schedule: Schedule) -> Strip:
    """All recorded ticks, by days of the schedule's time zone."""
    ticks = list(schedule.ticks.order_by("tick_at"))
    run_ids = [tick.run_id for tick in ticks if tick.run_id is not None]
    statuses = {run.pk: run for run in Run.objects.filter(pk__in=run_ids).only("pk", "status")}
    squares = _squares(schedule, ticks, statuses)
    days = [Day(title, list(found)) for title, found in groupby(squares, _day_of)]
    counts = Counter(square.outcome for square in squares)
    legend = [
        (outcome.value, _MARKS[outcome.value], outcome.label, counts[outcome.value])
        for outcome in TickOutcome
    ]
    return Strip(days[::-1], legend)


def line_of(schedule: Schedule, ticks: Iterable[ScheduleTick]) -> SafeString:
    """The ticks in one line for a cell, oldest first, each linked to its run."""
    squares = _squares(schedule, sorted(ticks, key=lambda tick: tick.tick_at), None)
    return SafeString(render_to_string("admin/parts/tick_line.html", {"squares": squares}).strip())


def _squares(
    schedule: Schedule, ticks: Sequence[ScheduleTick], runs: dict[UUID, Run] | None
) -> list[Square]:
    """``runs`` are those that still exist; ``None`` if that was not looked up."""
    is_known = schedule.time_zone in known_time_zones()
    zone = ZoneInfo(schedule.time_zone if is_known else "UTC")
    return [_square(tick, zone, runs) for tick in ticks]


def _square(tick: ScheduleTick, zone: ZoneInfo, runs: dict[UUID, Run] | None) -> Square:
    at = tick.tick_at.astimezone(zone)
    run = None if runs is None or tick.run_id is None else runs.get(tick.run_id)
    title = f"{at:%a %d %b, %H:%M}: {tick.get_outcome_display().lower()}"
    if run is not None:
        title += f", run {run.get_status_display().lower()}"
    is_linked = tick.run_id is not None and (runs is None or run is not None)
    address = reverse("admin:scripts_engine_run_change", args=[tick.run_id]) if is_linked else ""
    return Square(at, tick.outcome, _MARKS[tick.outcome], title, address)


def _day_of(square: Square) -> str:
    return f"{square.at:%a %d %b %Y}"
