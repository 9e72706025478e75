"""The next ticks of a schedule in words, also of one that is being typed."""

from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from scripts_engine.flows.schedules.cron import InvalidCronError, UnknownTimeZoneError, next_ticks

_SHOWN = 5


class Preview(NamedTuple):
    """The next ticks in words, or why there are none."""

    ticks: list[str]
    problem: str = ""


def preview_of(cron: str, time_zone: str) -> Preview:
    if not cron.strip():
        return Preview([], "Enter five fields above to see the next ticks.")
    try:
        ticks = next_ticks(cron, time_zone, timezone.now(), _SHOWN)
    except (InvalidCronError, UnknownTimeZoneError) as error:
        return Preview([], str(error))
    return Preview([in_words(tick, time_zone) for tick in ticks])


def in_words(tick: datetime, time_zone: str) -> str:
    """For example “Mon 23 Nov 2026, 06:00 CET (05:00 UTC)”."""
    local = tick.astimezone(ZoneInfo(time_zone))
    if local.utcoffset() == tick.astimezone(UTC).utcoffset():
        return f"{local:%a %d %b %Y, %H:%M} UTC"
    return f"{local:%a %d %b %Y, %H:%M %Z} ({tick.astimezone(UTC):%H:%M} UTC)"


def rendered(preview: Preview, address: str) -> SafeString:
    """The list for the form, which a script renews from ``address``."""
    context = {"preview": preview, "address": address}
    return SafeString(render_to_string("admin/parts/next_ticks.html", context).strip())
