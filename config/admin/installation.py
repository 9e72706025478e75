"""The page of the installation, for superusers: whether it works, and who uses it most."""

import platform
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import django
from django.contrib.admin import site
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection
from django.db.models import Count, F, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from accounts.admin.reach import is_superuser
from accounts.models import Organisation
from config.admin.home.sandbox import sandbox
from config.operations.readiness import report
from core.admin.display import DANGER, SUCCESS, WARNING, size_text
from core.admin.links import list_of, page_of
from core.node_state import RUNNING
from core.version import moonhook_version
from jobs.models import QueueEntry
from jobs.queue.figures import COUNTED_UP_TO, queue_figures
from scripts_engine.admin.run_storage import RunStorageUse, run_storage_use
from scripts_engine.models import Run
from scripts_engine.models.run import RunQuerySet

_BUSY = timedelta(hours=24)
_ORGANISATIONS_SHOWN = 10
_STATES = {"ok": ("Ready", SUCCESS), "degraded": ("Degraded", WARNING)}
_NOT_READY = ("Not ready", DANGER)
_SIZE_STATEMENTS = {
    "postgresql": "SELECT pg_database_size(current_database())",
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
}


class Condition(NamedTuple):
    """A check or a service of this node."""

    name: str
    text: str
    """``ok``, ``running``, or what is wrong."""
    is_good: bool


@dataclass(frozen=True, slots=True)
class Node:
    title: str
    colour: str
    conditions: list[Condition]


@dataclass(frozen=True, slots=True)
class BusyOrganisation:
    name: str
    url: str
    runs: int
    runs_url: str
    not_succeeded: int
    share_percent: int
    """Its runs, of those of the busiest."""
    storage: RunStorageUse


class Fact(NamedTuple):
    name: str
    value: str


def installation(request: HttpRequest) -> HttpResponse:
    if not is_superuser(request):
        raise PermissionDenied
    return TemplateResponse(
        request,
        "admin/installation.html",
        {
            **site.each_context(request),
            "title": "Installation",
            "node": _node(),
            "queue": _queue_facts(),
            "queue_url": list_of(QueueEntry),
            "database": _database_facts(),
            "versions": [
                Fact("Moonhook", moonhook_version()),
                Fact("Python", platform.python_version()),
                Fact("Django", django.__version__),
            ],
            "sandbox": sandbox(is_operator=True),
            "organisations": _busiest_organisations(),
        },
    )


def _node() -> Node:
    """The node that answers this request, as its /readyz has it."""
    found = report()
    title, colour = _STATES.get(found.status, _NOT_READY)
    good = {"ok", RUNNING}
    conditions = [
        Condition(name, _text(value, found.reasons.get(name)), value in good)
        for name, value in (found.checks | found.services).items()
    ]
    if "open-files" in found.reasons:
        conditions.append(Condition("open-files", found.reasons["open-files"], is_good=False))
    return Node(title, colour, conditions)


def _text(value: str, reason: str | None) -> str:
    return f"{value}: {reason}" if reason else value


def _queue_facts() -> list[Fact]:
    figures = queue_figures()
    return [
        Fact("Waiting for a slot", _count(figures.waiting)),
        Fact("Running", _count(figures.running)),
        Fact("Delayed", _count(figures.delayed)),
        Fact("Paused", _count(figures.paused)),
        Fact(
            "Longest wait", f"{figures.oldest_seconds:,.0f} s" if figures.waiting else "none waits"
        ),
    ]


def _count(number: int) -> str:
    return f"{number:,}{' or more' if number >= COUNTED_UP_TO else ''}"


def _database_facts() -> list[Fact]:
    return [
        Fact("Kind", connection.display_name),
        Fact("Version", ".".join(map(str, connection.get_database_version()))),
        Fact("Size", _database_size()),
    ]


def _database_size() -> str:
    try:
        return size_text(database_bytes())
    except DatabaseError:
        # PostgreSQL asks for a right that its administrator may have taken away.
        return "unknown: the database does not say"


def _busiest_organisations() -> list[BusyOrganisation]:
    """Those with the most runs of the last 24 hours, counted on indexes alone."""
    now = timezone.now()
    recent = Run.objects.called_between(now - _BUSY, now)
    busiest = list(
        Organisation.objects.select_related("run_storage")
        .annotate(
            run_count=_count_for_each(recent), bad_count=_count_for_each(recent.not_succeeded())
        )
        .filter(run_count__gt=0)
        .order_by(F("run_count").desc(), "name")[:_ORGANISATIONS_SHOWN]
    )
    return [
        BusyOrganisation(
            name=each.name,
            url=page_of(each),
            runs=each.run_count,
            runs_url=list_of(Run, organisation__id__exact=each.pk),
            not_succeeded=each.bad_count,
            share_percent=max(1, each.run_count * 100 // busiest[0].run_count),
            storage=run_storage_use(each),
        )
        for each in busiest
    ]


def _count_for_each(runs: RunQuerySet) -> Coalesce:
    of_one = runs.filter(organisation=OuterRef("pk")).order_by().values("organisation")
    counted = of_one.annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def database_bytes() -> int:
    """The size of the database, without write-ahead logs.

    Raises ``DatabaseError`` where the database's user may not ask.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SIZE_STATEMENTS[connection.vendor])
        [size] = cursor.fetchone()
    return int(size)
