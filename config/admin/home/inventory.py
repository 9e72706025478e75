"""The number of rows of each model, and the next step of the set-up."""

from dataclasses import dataclass
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Exists, Model, OuterRef, Q
from django.http import HttpRequest

from accounts.admin.reach import has_scope, is_superuser, organisations_with
from accounts.models import ApiKey, DeviceToken, Organisation, User
from accounts.scopes import Scope
from config.admin.parameters import CappedPaginator
from core.admin.filters import NOT_REVOKED
from core.admin.links import list_of, page_of
from core.admin.panels import Link
from hooks.models import Hook
from scripts_engine.admin.scripts.starters import ALERTS_TITLE
from scripts_engine.models import Script
from sessions_api.models import Session


def rows_of(request: HttpRequest, site: AdminSite, model: type[Model]) -> Any:
    """Return the rows that the model's admin page shows to this user."""
    return site.get_model_admin(model).get_queryset(request)


@dataclass(frozen=True, slots=True)
class ModelCount:
    title: str
    number: str
    url: str
    icon: str


_SHOWN: tuple[tuple[type[Model], str, dict[str, bool]], ...] = (
    (Script, "code", {}),
    (Hook, "webhook", {}),
    (ApiKey, "key", {"revoked_at__isnull": True}),
    (User, "group", {}),
    (DeviceToken, "smartphone", {"revoked_at__isnull": True}),
    (Session, "login", {}),
    (Organisation, "domain", {}),
)


@dataclass(frozen=True, slots=True)
class Inventory:
    counts_by_model: dict[type[Model], CappedPaginator]
    urls: dict[type[Model], str]
    """The lists with as many rows as are counted."""
    opened: frozenset[type[Model]]
    """Those whose lists the user's roles open."""

    @classmethod
    def read(cls, request: HttpRequest, site: AdminSite) -> "Inventory":
        """Count the rows in use, without revoked keys and devices, up to the limit of the lists."""
        counts: dict[type[Model], CappedPaginator] = {}
        urls: dict[type[Model], str] = {}
        for model, _, in_use in _SHOWN:
            rows = _rows(request, site, model)
            counts[model] = CappedPaginator(rows.filter(**in_use), 1)
            # Without any rows, only the plain list says how to add the first.
            is_filtered = in_use and (counts[model].count or rows.exists())
            urls[model] = list_of(model, **NOT_REVOKED) if is_filtered else list_of(model)
        opened = frozenset(
            model for model in counts if site.get_model_admin(model).has_view_permission(request)
        )
        return cls(counts, urls, opened)

    def has(self, model: type[Model]) -> bool:
        return self.counts_by_model[model].count > 0

    @property
    def counts(self) -> tuple[ModelCount, ...]:
        return tuple(
            ModelCount(
                str(model._meta.verbose_name_plural),
                self.counts_by_model[model].count_in_words,
                self.urls[model],
                icon,
            )
            for model, icon, _ in _SHOWN
            if model in self.opened
        )


def _rows(request: HttpRequest, site: AdminSite, model: type[Model]) -> Any:
    """Return the rows that the model's list pages through."""
    rows = rows_of(request, site, model)
    if model is not Session:
        return rows
    newest = site.get_model_admin(Session).newest(request)  # type: ignore[attr-defined]
    return rows.filter(pk__in=newest.values("pk"))


@dataclass(frozen=True, slots=True)
class NextStep:
    text: str
    link: Link | None


def next_step(request: HttpRequest, inventory: Inventory) -> NextStep | None:
    if not inventory.has(Organisation) and is_superuser(request):
        return NextStep(
            "There is no organisation. API keys, scripts and runs all belong to one.",
            Link("Add organisation", list_of(Organisation, "add")),
        )
    if not inventory.has(Script) and has_scope(request, Scope.PUBLISH):
        return NextStep(
            "No scripts yet. Write a script, then create a hook that runs it.",
            Link("Add script", list_of(Script, "add")),
        )
    if inventory.has(Script) and not inventory.has(Hook) and has_scope(request, Scope.WRITE_HOOKS):
        return NextStep(
            "No script has a hook. Create one, and give its URL to the caller.",
            Link("Create hook", list_of(Hook, "add")),
        )
    return _tell_somebody(request) if inventory.has(Hook) else None


def _tell_somebody(request: HttpRequest) -> NextStep | None:
    """For the only organisation that the person administers, or the one in view."""
    places = organisations_with(request, Scope.ALL)
    told = Script.objects.told_of_alerts().filter(organisation=OuterRef("pk"))
    rows = places.annotate(is_told=Q(failure_mails=True) | Exists(told))[:2]
    if len(rows) != 1 or rows[0].is_told:
        return None
    return NextStep(
        "Nobody is told when a script fails. Choose a script that is run with each alert, such as "
        f"the example “{ALERTS_TITLE}”, or switch e-mails on.",
        Link("Choose who is told", f"{page_of(rows[0])}#id_alert_script"),
    )
