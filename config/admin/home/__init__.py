"""The home page of the admin: recent runs, failures, expiring keys, sign-ins and counts.

Each part reads rows through the models' admin pages, so it shows only rows that those would show.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils import timezone

from accounts.admin.reach import is_administrator, is_superuser
from accounts.models import ApiKey, AuthEvent, Organisation
from config.admin.home.expiring_keys import ExpiringKeys, expiring_keys
from config.admin.home.failures import Failures, failures
from config.admin.home.inventory import Count, Inventory, NextStep, next_step, rows_of
from config.admin.home.latest_runs import LatestRun, latest_runs
from config.admin.home.outcomes import Outcomes, outcomes
from config.admin.home.run_storage import Row as RunStorageRow
from config.admin.home.run_storage import run_storage
from config.admin.home.sandbox import Sandbox, sandbox
from config.admin.home.sign_ins import FailedLogins, SignIn, failed_logins, sign_ins
from scripts_engine.models import Hook, Run, Script

SHOWN = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class RunsPart:
    outcomes: Outcomes
    failures: Failures
    latest: list[LatestRun]
    has_hook: bool


@dataclass(frozen=True, slots=True)
class Home:
    """The parts of the page.

    ``next_step`` is None once everything is set up. The other parts are None for a user who
    administers nothing, and ``runs`` is None until there is a script.
    """

    next_step: NextStep | None
    runs: RunsPart | None = None
    sandbox: Sandbox | None = None
    storage: list[RunStorageRow] | None = None
    keys: ExpiringKeys | None = None
    sign_ins: list[SignIn] | None = None
    failed_logins: FailedLogins | None = None
    counts: tuple[Count, ...] = ()


def home(request: HttpRequest, site: AdminSite) -> Home:
    if not is_administrator(request):
        return Home(_NOTHING_TO_ADMINISTER)
    inventory = Inventory.read(request, site)
    return Home(
        next_step=next_step(request, inventory),
        runs=_runs(request, site, inventory) if inventory.has(Script) else None,
        sandbox=sandbox(is_superuser(request)),
        storage=run_storage(rows_of(request, site, Organisation)),
        keys=expiring_keys(rows_of(request, site, ApiKey), has_any=inventory.has(ApiKey)),
        sign_ins=sign_ins(rows_of(request, site, AuthEvent)),
        failed_logins=failed_logins(rows_of(request, site, AuthEvent), timezone.now()),
        counts=inventory.counts,
    )


def _runs(request: HttpRequest, site: AdminSite, inventory: Inventory) -> RunsPart:
    runs, now = rows_of(request, site, Run), timezone.now()
    shows_organisations = is_superuser(request)
    return RunsPart(
        outcomes=outcomes(runs, now - SHOWN, now),
        failures=failures(runs, now - SHOWN, now, with_organisation=shows_organisations),
        latest=latest_runs(runs, with_organisation=shows_organisations),
        has_hook=inventory.has(Hook),
    )


_NOTHING_TO_ADMINISTER = NextStep(
    "You are not an administrator of any organisation. Ask a superuser to make you one, on the "
    "organisation's page under Members.",
    None,
)
