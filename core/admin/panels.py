"""Panels below an object's form, which list the objects that belong to it.

An app can add a panel to another app's page: sessions are listed on the page of their user,
scripts on that of their organisation.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Link:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A table with a title. ``empty`` is the text shown if it has no rows."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty: str
    links: Sequence[Link] = ()

    @property
    def table(self) -> dict[str, object]:
        return {"headers": self.headers, "rows": self.rows}


PanelSource = Callable[[HttpRequest, Any], Panel | None]

_SOURCES: dict[type[Model], list[PanelSource]] = defaultdict(list)


def panel_of(model: type[Model]) -> Callable[[PanelSource], PanelSource]:
    """Registers a function of request and object, which returns a panel or ``None``."""

    def register(source: PanelSource) -> PanelSource:
        _SOURCES[model].append(source)
        return source

    return register


def panels_of(request: HttpRequest, obj: Model) -> list[Panel]:
    panels = (source(request, obj) for source in _SOURCES[type(obj)])
    return [panel for panel in panels if panel is not None]
