"""Filters of the run list. Each narrows the query so that an index serves it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RadioFilter

from core.admin.filters import PeriodFilter
from scripts_engine.models import RunStatus, Trigger

_PERIODS = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
}
NOT_SUCCEEDED = "not-succeeded"
SAVED, DRAFT = "saved", "draft"
YES = "yes"
# The parameters of the runs that home counts.
COUNTED_ON_HOME = {"within": "24h", "source": SAVED}


class OutcomeFilter(ChoicesDropdownFilter):
    """Filters by one outcome, or by all except success."""

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        shown = [self.all_option, (NOT_SUCCEEDED, "Any failure"), *RunStatus.choices]
        name = self.lookup_kwarg
        form = self.form_class(
            label="By outcome", name=name, choices=shown, data={name: self.value()}
        )
        yield {"form": form}

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        status = self.value()
        if status == NOT_SUCCEEDED:
            return queryset.failed()
        if status in RunStatus.values:
            return queryset.ended_as(status)
        return super().queryset(request, queryset)


class TriggerFilter(ChoicesDropdownFilter):
    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        trigger = self.value()
        if trigger in Trigger.values:
            return queryset.triggered_by(trigger)
        return super().queryset(request, queryset)


class SourceFilter(RadioFilter):
    """Filters by whether a saved version ran, or a draft: a source that was not saved."""

    title = "source"
    parameter_name = "source"
    all_option = ("", "Any source")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(SAVED, "Saved versions"), (DRAFT, "Unsaved drafts")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        if self.value() == SAVED:
            return queryset.of_saved_versions()
        return queryset.of_drafts() if self.value() == DRAFT else queryset


class StartTimeFilter(PeriodFilter):
    """Filters by a range of start times."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "start time (UTC)"


class DeadLetterFilter(RadioFilter):
    """Filters by queued work that failed for good and that nobody has replayed or dismissed."""

    title = "dead letter"
    parameter_name = "dead_letter"
    all_option = ("", "All runs")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(YES, "Dead letters only")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        return queryset.dead_letters() if self.value() == YES else queryset


class RecentFilter(RadioFilter):
    """Filters by a recent period: by when a run was requested, as home counts runs."""

    title = "period"
    parameter_name = "within"
    all_option = ("", "Any time")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, title) for value, (title, _) in _PERIODS.items()]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        if self.value() not in _PERIODS:
            return queryset
        _, span = _PERIODS[self.value()]
        return queryset.called_since(timezone.now() - span)
