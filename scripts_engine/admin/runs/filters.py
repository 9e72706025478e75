"""Filters and searches of the run list.

Each filter narrows the query so that an index serves it. The searches (by response status, error,
payload, and for failures like another) have none: only what the runs of the list show is searched,
and only among the newest of them. They come last, so that the others narrow the runs that are
searched.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.models import BinaryField, F, Func, IntegerField, QuerySet, Value
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RadioFilter, TextFilter
from unfold.widgets import UnfoldAdminTextInputWidget

from core.admin.filters import PeriodFilter
from core.database.ids import parse_uuid
from scripts_engine.failures import NEWEST_FAILURES, error_kind_of, failures_like, first_line
from scripts_engine.models import RunStatus, Trigger
from scripts_engine.models.run import RunQuerySet

_PERIODS = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
}
NOT_SUCCEEDED = "not-succeeded"
COUNTED, DRAFT = "counted", "draft"
YES = "yes"
# The parameters of the runs that home counts.
EVERY_ATTEMPT = "all"
COUNTED_ON_HOME = {"within": "24h", "source": COUNTED, "attempts": EVERY_ATTEMPT}

NEWEST_ERRORS = 10_000
NEWEST_EVENTS = 10_000
NEWEST_PAYLOADS = 1_000
# By event id or error in the search field.
MAX_FOUND = 1_000
# Of each payload.
SEARCHED_BYTES = 64 * 1024
MAX_SEARCH_LENGTH = 200
_STATUS = re.compile(r"([1-5])(?:([0-9]{2})|xx)", re.IGNORECASE)


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
    """Leaves out runs of drafts and test events, which count nowhere, or shows only drafts."""

    title = "source"
    parameter_name = "source"
    all_option = ("", "Any source")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(COUNTED, "Without drafts and test events"), (DRAFT, "Drafts")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        if self.value() == COUNTED:
            return queryset.counted()
        return queryset.of_drafts() if self.value() == DRAFT else queryset


class AttemptsFilter(RadioFilter):
    """Chooses between one row per piece of work, and one per attempt; the list narrows itself."""

    title = "attempts"
    parameter_name = "attempts"
    all_option = ("", "The last attempt at each piece of work")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(EVERY_ATTEMPT, "Every attempt")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


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


def _text_field(label: str, help_text: str, **options: Any) -> forms.CharField:
    return forms.CharField(
        required=False,
        label=label,
        help_text=help_text,
        widget=UnfoldAdminTextInputWidget,
        **{"max_length": MAX_SEARCH_LENGTH, **options},
    )


class SearchFilter(TextFilter):
    """A text field among the filters. ``note`` says above the list what was searched.

    An invalid text finds nothing, and the note says why.
    """

    field: ClassVar[forms.CharField]
    bound = ""
    note = ""

    def queryset(self, request: HttpRequest, queryset: RunQuerySet) -> RunQuerySet:
        try:
            text: str = self.field.clean(self.value() or "")
        except ValidationError as error:
            self.note = f"{self.field.label}: {' '.join(error.messages)}"
            return queryset.none()
        if not text:
            return queryset
        self.note = self.bound
        return self.found(queryset, text)

    def found(self, runs: RunQuerySet, text: str) -> RunQuerySet:
        raise NotImplementedError

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        form = forms.Form({self.parameter_name: self.value()})
        form.fields[self.parameter_name] = self.field
        yield {"form": form}


class ResponseFilter(SearchFilter):
    """Filters by an HTTP status such as 404, or a class of them such as 4xx."""

    title, parameter_name = "response status", "response"
    field = _text_field(
        "By response status",
        "A status such as 404, or a class such as 5xx.",
        max_length=3,
        validators=[RegexValidator(_STATUS, "Enter a status such as 404 or a class such as 5xx.")],
    )

    def found(self, runs: RunQuerySet, text: str) -> RunQuerySet:
        return runs.answered_with(statuses_of(text))


def statuses_of(text: str) -> range:
    """The statuses of a text like ``404`` or ``4xx``."""
    match = _STATUS.fullmatch(text)
    if match is None:
        return range(0)
    hundred, exact = int(match[1]) * 100, match[2]
    return range(hundred, hundred + 100) if exact is None else range(int(text), int(text) + 1)


class ErrorFilter(SearchFilter):
    title, parameter_name = "error text", "error"
    field = _text_field("By error text", f"Searches the newest {NEWEST_ERRORS:,} failed runs.")
    bound = f"Errors are searched in the newest {NEWEST_ERRORS:,} failed runs."

    def found(self, runs: RunQuerySet, text: str) -> RunQuerySet:
        return _newest(runs.failed(), NEWEST_ERRORS).filter(error_message__icontains=text)


class PayloadFilter(SearchFilter):
    """Finds bytes, so upper and lower case differ."""

    title, parameter_name = "payload text", "payload"
    field = _text_field(
        "By payload text",
        f"Searches the first {SEARCHED_BYTES // 1024} KiB of the newest {NEWEST_PAYLOADS:,} "
        "payloads. Upper and lower case differ.",
    )
    bound = (
        f"Payloads are searched in the newest {NEWEST_PAYLOADS:,} runs, each in its first "
        f"{SEARCHED_BYTES // 1024} KiB. Upper and lower case differ."
    )

    def found(self, runs: RunQuerySet, text: str) -> RunQuerySet:
        needle = Value(text.encode(), BinaryField())
        place = _PlaceInBytes(F("request_body"), Value(SEARCHED_BYTES), needle)
        return _newest(runs, NEWEST_PAYLOADS).alias(place=place).filter(place__gt=0)


class _PlaceInBytes(Func):
    """The position of bytes in the first bytes of others, from 1; 0 if they do not occur."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "INSTR(SUBSTR({}, 1, {}), {})"
        return self._compiled(compiler, template, (0, 1, 2))

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "POSITION({} IN SUBSTRING({} FROM 1 FOR {}))"
        return self._compiled(compiler, template, (2, 0, 1))

    def _compiled(self, compiler: Any, template: str, order: tuple[int, ...]) -> Any:
        parts = [compiler.compile(self.source_expressions[number]) for number in order]
        sql = template.format(*(sql for sql, _ in parts))
        return sql, tuple(value for _, values in parts for value in values)


def runs_about(runs: RunQuerySet, text: str) -> RunQuerySet:
    """Those of the newest runs whose event id is the text, or whose error contains it.

    Looks them up at once, each search in a bounded number of the newest runs.
    """
    if not text or len(text) > MAX_SEARCH_LENGTH or "\0" in text:
        return runs.none()
    of_event = _newest(runs.filter(hook_id__isnull=False), NEWEST_EVENTS).filter(event_id=text)
    of_error = _newest(runs.failed(), NEWEST_ERRORS).filter(error_message__icontains=text)
    found = {
        run_id
        for rows in (of_event, of_error)
        for run_id in rows.order_by("-pk").values_list("pk", flat=True)[:MAX_FOUND]
    }
    return runs.filter(pk__in=found)


def _newest(runs: RunQuerySet, count: int) -> RunQuerySet:
    newest = runs.order_by("-pk").values("pk")[:count]
    return runs.filter(pk__in=newest)


class SameErrorFilter(TextFilter):
    """Lists the failures that home counts with the given run; not offered in the list itself."""

    title, parameter_name = "error", "same_error_as"
    note = ""

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        self._model_admin = model_admin

    def queryset(self, request: HttpRequest, queryset: RunQuerySet) -> RunQuerySet:
        if not self.value():
            return queryset
        run_id = parse_uuid(self.value())
        # Within reach of the person, like the runs of the list.
        reached = self._model_admin.get_queryset(request)
        columns = ("script_id", "status", "error_message")
        found = reached.failed().filter(pk=run_id).values_list(*columns).first()
        if found is None:
            self.note = "The failure that these runs are compared with does not exist."
            return queryset.none()
        _, status, error = found
        self.note = (
            f"Failures of one script like “{first_line(error, status)}”, in the newest "
            f"{NEWEST_FAILURES:,} failures. Numbers and ids in the error may differ."
        )
        return queryset.filter(pk__in=failures_like(queryset.failed(), error_kind_of(*found)))

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        form = forms.Form({self.parameter_name: self.value()})
        form.fields[self.parameter_name] = forms.CharField(widget=forms.HiddenInput)
        yield {"form": form}
