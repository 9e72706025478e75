"""Panels below an object's form, which list the objects that belong to it.

An app can add a panel to another app's page: sessions, for example, are listed on the page of
their user. A page's own template may show more, its context.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse


@dataclass(frozen=True, slots=True)
class Link:
    """``scope`` is what the link's page needs, if that is more than the panel's."""

    title: str
    url: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A table or a chart with a title. ``empty`` is the text shown if it has neither."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty: str
    links: Sequence[Link] = ()
    chart: str = ""
    """HTML."""

    @property
    def table(self) -> dict[str, object]:
        return {"headers": self.headers, "rows": self.rows}


PanelSource = Callable[[HttpRequest, Any], Panel | None]

# Whether the person may see what needs the scope, on the page of the row.
Shows = Callable[[HttpRequest, str, Any], bool]

_SOURCES: dict[type[Model], list[tuple[int, str, PanelSource]]] = defaultdict(list)


def panel_of(
    model: type[Model], *, scope: str, place: int = 0
) -> Callable[[PanelSource], PanelSource]:
    """Registers a function of request and object, which returns a panel or ``None``.

    Only people with the scope see it. Panels are shown by ``place``, and those of one place in the
    order of registration.
    """

    def register(source: PanelSource) -> PanelSource:
        _SOURCES[model].append((place, scope, source))
        _SOURCES[model].sort(key=itemgetter(0))
        return source

    return register


def panels_of(request: HttpRequest, obj: Model, shows: Shows) -> list[Panel]:
    """The panels, each with its links, that ``shows`` admits."""
    panels = (
        source(request, obj)
        for _, scope, source in _SOURCES[type(obj)]
        if shows(request, scope, obj)
    )
    return [
        replace(
            panel,
            links=[
                link for link in panel.links if not link.scope or shows(request, link.scope, obj)
            ],
        )
        for panel in panels
        if panel is not None
    ]


class PageContext:
    """Mixin for model admins whose rows' pages show more than the form."""

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def change_view(
        self: Any,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        context = {**(extra_context or {}), **self.page_context(request, row)}
        response: HttpResponse = super().change_view(request, object_id, form_url, context)  # type: ignore[misc]
        return response
