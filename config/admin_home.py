"""The admin's first page: what there is, and what ran last."""

from dataclasses import dataclass
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts.admin.links import link, list_of, page_of
from accounts.admin.panels import Link, Panel
from accounts.admin.reach import is_administrator, is_superuser
from accounts.models import ApiKey, DeviceToken, Organisation, User
from scripts_engine.admin.statuses import status_label
from scripts_engine.models import Hook, Run, Script
from sessions_api.models import Session

_LATEST_RUNS = 10


@dataclass(frozen=True, slots=True)
class Count:
    title: str
    number: int
    url: str


@dataclass(frozen=True, slots=True)
class Home:
    """``next_step`` is what to do before anything can run; ``None`` once something may."""

    counts: list[Count]
    next_step: tuple[str, Link | None] | None
    runs: Panel | None


def home(request: HttpRequest, site: AdminSite) -> Home:
    """Through the models' own pages, so that it shows what they would."""
    if not is_administrator(request):
        return Home([], (_NOTHING_TO_ADMINISTER, None), None)

    def rows(model: type[Model]) -> QuerySet[Any]:
        return site.get_model_admin(model).get_queryset(request)

    numbers = {
        Organisation: rows(Organisation).count(),
        User: rows(User).count(),
        ApiKey: rows(ApiKey).filter(revoked_at__isnull=True).count(),
        DeviceToken: rows(DeviceToken).filter(revoked_at__isnull=True).count(),
        Session: rows(Session).count(),
        Script: rows(Script).count(),
        Hook: rows(Hook).count(),
    }
    return Home(
        counts=[
            Count(str(model._meta.verbose_name_plural), number, list_of(model))
            for model, number in numbers.items()
        ],
        next_step=_next_step(request, numbers),
        runs=_latest_runs(rows(Run)) if numbers[Hook] else None,
    )


_NOTHING_TO_ADMINISTER = (
    "You are not an administrator of any organisation. Ask a superuser to make you one: "
    "on the page of the organisation, under Members."
)


def _next_step(
    request: HttpRequest, numbers: dict[type[Model], int]
) -> tuple[str, Link | None] | None:
    if not numbers[Organisation] and is_superuser(request):
        return (
            "There is no organisation yet. Everything belongs to one: API keys, scripts, runs.",
            Link("Add organisation", list_of(Organisation, "add")),
        )
    if not numbers[Script]:
        return (
            "There is no script yet. Write one: it runs whenever its hook is called.",
            Link("Write script", list_of(Script, "add")),
        )
    if not numbers[Hook]:
        return (
            "No script has a hook yet. Issue one, and give its URL to whoever shall call it.",
            Link("Issue hook", list_of(Hook, "add")),
        )
    return None


def _latest_runs(runs: QuerySet[Run]) -> Panel:
    shown = runs.select_related("script", "hook").only(
        "started_at",
        "script__name",
        "hook__name",
        "status",
        "response_status",
        "duration_ms",
        "trigger",
    )
    return Panel(
        title="Latest runs",
        headers=("Started", "Script", "Outcome", "Response", "Ran", "Trigger"),
        rows=[
            (
                link(page_of(run), run.started_at.strftime("%Y-%m-%d %H:%M:%S")),
                run.script,
                status_label(run.status),
                run.response_status,
                f"{run.duration_ms:.1f} ms",
                run.hook or run.get_trigger_display(),
            )
            for run in shown[:_LATEST_RUNS]
        ],
        empty="Nothing ran yet. Call a hook with the curl line that was shown when it was issued.",
        links=(Link("All runs", list_of(Run)),),
    )
