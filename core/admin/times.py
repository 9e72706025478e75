"""Times on pages: in words relative to now, with the exact one on hover."""

from datetime import datetime
from functools import cache
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil

from core.admin.display import display

_COUNTED_SECONDS = 120


def exact(moment: datetime) -> str:
    """Return a text like ``2026-11-20 12:00:05 UTC``."""
    return date_format(moment, "DATETIME_FORMAT")


def ago(moment: datetime) -> str:
    """Return a text like ``5 minutes ago``."""
    span = timesince(moment, depth=1)
    return "just now" if span.startswith("0") else f"{span} ago"


def until(moment: datetime) -> str:
    """Return a text like ``in 34 s`` or ``in 5 days``."""
    seconds = (moment - timezone.now()).total_seconds()
    if seconds < _COUNTED_SECONDS:
        return f"in {max(1, round(seconds))} s"
    return f"in {timeuntil(moment, depth=1)}"


def relative(moment: datetime, css_class: str = "", *, title: str = "") -> SafeString:
    """Returns a ``<time>`` in words. ``title`` replaces the exact time in UTC on hover."""
    return format_html(
        '<time{} datetime="{}" title="{}">{}</time>',
        format_html(' class="{}"', css_class) if css_class else "",
        moment.isoformat(),
        title or exact(moment),
        until(moment) if moment > timezone.now() else ago(moment),
    )


@cache
def _column(name: str, title: str) -> Any:
    """The list column of a time field. Cached: Django compares columns by identity."""

    @display(description=title, ordering=name)
    def column(row: Any) -> SafeString | None:
        moment = getattr(row, name)
        return None if moment is None else relative(moment)

    column.__name__ = name
    return column


class RelativeTimes:
    """Mixin that ``MoonhookAdminSite.register`` puts before each model admin.

    Lists show time fields by ``relative``.
    """

    opts: Any

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._with_columns(super().get_list_display(request))  # type: ignore[misc]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        links = super().get_list_display_links(request, list_display)  # type: ignore[misc]
        return links and self._with_columns(links)

    def get_sortable_by(self, request: HttpRequest) -> Any:
        return self._with_columns(super().get_sortable_by(request))  # type: ignore[misc]

    def _with_columns(self, names: Any) -> tuple[Any, ...]:
        return tuple(self._column_of(name) if isinstance(name, str) else name for name in names)

    def _column_of(self, name: str) -> Any:
        try:
            field = self.opts.get_field(name)
        except FieldDoesNotExist:
            return name
        if not isinstance(field, DateTimeField):
            return name
        return _column(name, field.verbose_name)


def with_relative_times(admin_class: type[Any]) -> type[Any]:
    """Put the mixin before the class, which may choose its columns by request."""
    bases = (RelativeTimes, admin_class)
    return type(admin_class.__name__, bases, {"__module__": admin_class.__module__})
