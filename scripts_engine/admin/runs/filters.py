"""How the list of runs is narrowed, so that an index finds what is left."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RadioFilter

from scripts_engine.models import RunStatus, Trigger

_WITHIN = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
}
NOT_SUCCEEDED = "not-succeeded"


class OutcomeFilter(ChoicesDropdownFilter):
    """An outcome, or any of the bad ones."""

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        shown = [self.all_option, (NOT_SUCCEEDED, "Did not succeed"), *RunStatus.choices]
        name = self.lookup_kwarg
        form = self.form_class(
            label=f"By {self.title}", name=name, choices=shown, data={name: self.value()}
        )
        yield {"form": form}

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        status = self.value()
        if status == NOT_SUCCEEDED:
            return queryset.not_succeeded()
        if status in RunStatus.values:
            return queryset.ended_as(status)
        return super().queryset(request, queryset)


class TriggerFilter(ChoicesDropdownFilter):
    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        trigger = self.value()
        if trigger in Trigger.values:
            return queryset.triggered_by(trigger)
        return super().queryset(request, queryset)


class RecentFilter(RadioFilter):
    """The times that are asked for most, without typing them."""

    title = "time"
    parameter_name = "within"
    all_option = ("", "Any time")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, title) for value, (title, _) in _WITHIN.items()]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        if self.value() not in _WITHIN:
            return queryset
        _, span = _WITHIN[self.value()]
        return queryset.started_between(timezone.now() - span, None)
