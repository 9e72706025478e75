"""Cells of lists whose rows have runs: the newest run, and how many in 24 hours."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts.models import Organisation
from core.admin.links import link, page_of
from core.admin.times import relative
from scripts_engine.admin.run_storage import run_storage_bars
from scripts_engine.admin.runs.presentation import status_label
from scripts_engine.models import Run
from scripts_engine.recent_runs import Activity, activity_of

SHOWN = timedelta(hours=24)


def newest_cell(run: Run | None, otherwise: str) -> SafeString | str:
    """The state of the run, and when it began, which leads to it."""
    if run is None:
        return otherwise
    return format_html(
        '<span class="mh-cell">{} <span class="whitespace-nowrap">{}</span></span>',
        status_label(run.status),
        link(page_of(run), relative(run.started_at)),
    )


def day_cell(activity: Activity, refused: int = 0) -> SafeString:
    """For example “120, 3 failed, 1 refused”."""
    bad = [
        (f"{count:,}", word)
        for count, word in ((activity.failed, "failed"), (refused, "refused"))
        if count
    ]
    words = format_html_join("", ', <span class="mh-bad">{} {}</span>', bad)
    return format_html("<span>{}{}</span>", f"{activity.runs:,}", words)


def cells_of_organisations(
    organisations: Sequence[Organisation],
) -> dict[UUID, tuple[SafeString | str, SafeString | str, SafeString | str]]:
    """The newest run, the runs of 24 hours and the storage of each."""
    activities = activity_of(organisations, "organisation_id", timezone.now() - SHOWN)
    bars = run_storage_bars(organisations)
    return {
        key: (newest_cell(activity.newest, "None recorded"), day_cell(activity), bars[key])
        for key, activity in activities.items()
    }
