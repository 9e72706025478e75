"""Lists whose rows have runs: what needs attention first, the newest run, how many in 24 hours."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.admin.views.main import ORDER_VAR
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from accounts.models import Organisation
from core.admin.links import link, page_of
from core.admin.times import relative
from scripts_engine.admin.run_storage import run_storage_bars
from scripts_engine.admin.runs.presentation import status_label
from scripts_engine.models import Run
from scripts_engine.recent_runs import Activity, activity_of

SHOWN = timedelta(hours=24)


class ActivityChangeList(ChangeList):
    """Rows that need attention come first, unless a person sorts by a column.

    What the cells show is read for the rows of the page only.
    """

    root_queryset: QuerySet[Any]
    result_list: Any

    def in_need(self, since: datetime) -> Q:
        """Selects the rows that need attention for something since then."""
        raise NotImplementedError

    def read(self, rows: list[Any], since: datetime) -> None:
        """Adds to each row what its cells show."""
        raise NotImplementedError

    def get_queryset(self, request: HttpRequest, *args: Any) -> QuerySet[Any]:
        in_need = self.in_need(timezone.now() - SHOWN)
        self.root_queryset = self.root_queryset.annotate(needs_attention=in_need)
        rows: QuerySet[Any] = super().get_queryset(request, *args)
        return rows

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        ordering = list(super().get_ordering(request, queryset))
        return ordering if self.params.get(ORDER_VAR) else ["-needs_attention", *ordering]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        self.read(self.result_list, timezone.now() - SHOWN)


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
