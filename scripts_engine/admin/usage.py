"""Usage of 90 days, as a picture on the pages of the organisation and the script.

The hook's page, of an app above, has one too.
"""

from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string

from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin.bars import bars_of
from core.admin.display import size_text
from core.admin.panels import Panel, panel_of
from scripts_engine.models import DailyUsage, Script
from scripts_engine.usage import KEPT_DAYS, DayOfUsage, by_day


@panel_of(Organisation, scope=Scope.READ_SCRIPTS, place=-2)
def usage_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel:
    return usage_panel(DailyUsage.objects.of_organisation(organisation))


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=2)
def usage_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.is_library:
        return None
    return usage_panel(DailyUsage.objects.filter(script_id=script.pk))


def usage_panel(rows: QuerySet[DailyUsage]) -> Panel:
    days = by_day(rows)
    calls, failures = sum(day.calls for day in days), sum(day.failures for day in days)
    chart = render_to_string(
        "admin/parts/usage.html",
        {
            "bars": bars_of([_counts(day) for day in days], [_title(day) for day in days]),
            "label": f"Calls by day in the last {KEPT_DAYS} days: {calls:,}, {failures:,} failed",
            "calls": calls,
            "failures": failures,
            "size": size_text(sum(day.bytes for day in days)),
            "cpu_seconds": sum(day.cpu_seconds for day in days),
            "since": days[0].day,
        },
    )
    return Panel(
        title="Usage",
        headers=(),
        rows=(),
        empty=f"No calls in {KEPT_DAYS} days. They are counted within a few minutes.",
        chart=chart if calls or failures else "",
    )


def _counts(day: DayOfUsage) -> dict[str, int]:
    # The attempts at a call may end on several days.
    return {"accepted": max(0, day.calls - day.failures), "failed": day.failures}


def _title(day: DayOfUsage) -> str:
    return f"{day.day}: {day.calls:,} calls, {day.failures:,} failed"
