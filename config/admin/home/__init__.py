"""The home page of the admin: recent runs, failures, expiring keys, sign-ins and counts.

Each part reads rows through the models' admin pages, so it shows only rows that those would show.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils import timezone

from accounts.admin.reach import has_any_scope, has_scope, is_superuser, organisations_with
from accounts.models import ApiKey, AuthEvent
from accounts.scopes import Scope
from config.admin.home.access import (
    ExpiringKeys,
    FailedLogins,
    SignIn,
    expiring_keys,
    failed_logins,
    sign_ins,
)
from config.admin.home.inventory import Inventory, ModelCount, NextStep, next_step, rows_of
from config.admin.home.runs import (
    Failures,
    LatestRun,
    Outcomes,
    StorageRow,
    failures,
    latest_runs,
    outcomes,
    run_storage,
)
from config.admin.home.sandbox import Sandbox, sandbox
from hooks.models import Hook
from scripts_engine.models import Run, Script
from scripts_engine.models.run import RunQuerySet

SHOWN = timedelta(hours=24)
_NOTHING_TO_ADMINISTER = NextStep(
    "You have no role in any organisation that opens pages here. Ask an administrator of your "
    "organisation for one.",
    None,
)


@dataclass(frozen=True, slots=True)
class RunsPart:
    outcomes: Outcomes
    failures: Failures | None
    """None without the scope: errors may quote what came in."""
    latest: list[LatestRun]
    has_hook: bool


@dataclass(frozen=True, slots=True)
class Home:
    """The parts of the page.

    ``next_step`` is None once everything is set up, and where the user's roles do not allow it. The
    other parts are None where the roles do not open them, and ``runs`` until there is a script.
    """

    next_step: NextStep | None
    runs: RunsPart | None = None
    sandbox: Sandbox | None = None
    storage: list[StorageRow] | None = None
    keys: ExpiringKeys | None = None
    sign_ins: list[SignIn] | None = None
    failed_logins: FailedLogins | None = None
    counts: tuple[ModelCount, ...] = ()


def home(request: HttpRequest, site: AdminSite) -> Home:
    if not has_any_scope(request):
        return Home(_NOTHING_TO_ADMINISTER)
    inventory = Inventory.read(request, site)
    sees_keys, sees_audit = (
        has_scope(request, scope) for scope in (Scope.READ_KEYS, Scope.READ_AUDIT)
    )
    return Home(
        next_step=next_step(request, inventory),
        runs=_runs(request, site, inventory) if inventory.has(Script) else None,
        sandbox=sandbox(is_superuser(request)),
        storage=run_storage(
            organisations_with(request, Scope.READ_SCRIPTS),
            are_linked=has_scope(request, Scope.READ_PEOPLE),
        ),
        keys=expiring_keys(rows_of(request, site, ApiKey), has_any=inventory.has(ApiKey))
        if sees_keys
        else None,
        sign_ins=sign_ins(rows_of(request, site, AuthEvent)) if sees_audit else None,
        failed_logins=failed_logins(rows_of(request, site, AuthEvent), timezone.now())
        if sees_audit
        else None,
        counts=inventory.counts,
    )


def _runs(request: HttpRequest, site: AdminSite, inventory: Inventory) -> RunsPart:
    runs, now = rows_of(request, site, Run), timezone.now()
    shows_organisations = is_superuser(request)
    return RunsPart(
        outcomes=outcomes(runs, now - SHOWN, now),
        failures=failures(
            _rows_with(request, site, Scope.READ_PAYLOADS),
            now - SHOWN,
            now,
            with_organisation=shows_organisations,
            may_undo=lambda script: has_scope(request, Scope.PUBLISH, script),
        )
        if has_scope(request, Scope.READ_PAYLOADS)
        else None,
        latest=latest_runs(runs, with_organisation=shows_organisations),
        has_hook=inventory.has(Hook),
    )


def _rows_with(request: HttpRequest, site: AdminSite, scope: Scope) -> RunQuerySet:
    page: Any = site.get_model_admin(Run)
    runs: RunQuerySet = page.rows_with(request, scope)
    return runs
