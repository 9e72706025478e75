"""System checks: wrong settings, and with ``check --deploy`` settings unsuitable for production."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register  # noqa: A004
from django.db import connection

from core.database.readiness import is_laid_out_otherwise
from hooks.flows.run_call import LONGEST_CALL_SECONDS
from hooks.senders import shipped_vectors, try_vector
from scripts_engine.sandbox import active_layers
from scripts_engine.sandbox_pool import REQUIRED_LAYER


@register()
def threads_outnumber_sandboxes(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.WEB_THREADS > settings.SANDBOX_SLOTS:
        return []
    return [
        Error(
            "Slow scripts could occupy every web thread and delay /session.",
            hint="Raise WEB_THREADS above SANDBOX_SLOTS.",
            id="moonhook.E001",
        )
    ]


@register()
def calls_end_before_the_server_stops(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.GRACEFUL_TIMEOUT_SECONDS > LONGEST_CALL_SECONDS:
        return []
    return [
        Error(
            "A stopping server would not wait for the longest call.",
            hint=f"Raise GRACEFUL_TIMEOUT above {LONGEST_CALL_SECONDS:g} seconds: the waits of "
            "a call, and the longest script.",
            id="moonhook.E002",
        )
    ]


@register()
def task_leases_outlast_tasks(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.TASK_LEASE_SECONDS > settings.TASK_TIMEOUT_SECONDS:
        return []
    return [
        Error(
            "Another worker would take over a task that is still running.",
            hint="Raise TASK_LEASE above TASK_TIMEOUT, by more than the nodes' clocks differ.",
            id="moonhook.E003",
        )
    ]


@register(Tags.database)
def the_database_is_laid_out_as_now(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Runs with ``migrate`` and ``serve``, the commands that name databases."""
    if not databases or not is_laid_out_otherwise(connection):
        return []
    return [
        Error(
            "This database was made before the first release, with tables that this version lays "
            "out otherwise.",
            hint="Start with an empty one: set MOONHOOK_DATA_DIR or DATABASE_URL to another place.",
            id="moonhook.E007",
        )
    ]


@register(Tags.security)
def senders_are_verified_as_documented(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Try each row of the table of senders against its test vectors."""
    trials = (try_vector(vector, is_diagnosed=False) for vector in shipped_vectors())
    return [
        Error(
            f"The sender {trial.vector.rules.preset} is not verified as it should be: the vector "
            f"{trial.vector.id} ends otherwise.",
            hint="manage.py check_senders says how; install this version of Moonhook again.",
            id="moonhook.E006",
        )
        for trial in trials
        if trial.problem
    ]


@register(Tags.security)
def data_is_private(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    directory = settings.DATA_DIR
    if not directory.exists() or not directory.stat().st_mode & 0o077:
        return []
    return [
        Warning(
            f"Other users of this machine can read {directory}.",
            hint=f"chmod 700 {directory}",
            id="moonhook.W007",
        )
    ]


_POSTGRESQL = "core.database.postgresql"


def _database() -> dict[str, Any]:
    database: dict[str, Any] = settings.DATABASES["default"]
    return database


@register(Tags.security, deploy=True)
def public_url_is_https(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.IS_PUBLIC_URL_HTTPS:
        return []
    return [
        Warning(
            "PUBLIC_URL is http: secrets and sessions are sent unencrypted.",
            hint="Put a proxy with TLS in front and set PUBLIC_URL to its https address.",
            id="moonhook.W001",
        )
    ]


@register(Tags.security, deploy=True)
def clients_have_their_own_address(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.TRUSTED_PROXY_COUNT or not settings.IS_PUBLIC_URL_HTTPS:
        return []
    return [
        Warning(
            "PUBLIC_URL is https, so there is a proxy, but TRUSTED_PROXY_COUNT is 0: all clients "
            "appear to have the same address and share its rate limits.",
            hint="Set TRUSTED_PROXY_COUNT to the number of proxies that add to X-Forwarded-For.",
            id="moonhook.W002",
        )
    ]


@register(Tags.database, deploy=True)
def database_serves_several_nodes(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if _database()["ENGINE"] == _POSTGRESQL:
        return []
    return [
        Warning(
            "The database is SQLite: one machine, one writer at a time.",
            hint="Set DATABASE_URL to a PostgreSQL database before adding a second node.",
            id="moonhook.W003",
        )
    ]


@register(Tags.security, deploy=True)
def staff_have_a_second_factor(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.IS_SECOND_FACTOR_REQUIRED:
        return []
    return [
        Warning(
            "Staff may log in to the admin with a password alone.",
            hint="Set ADMIN_SECOND_FACTOR=required.",
            id="moonhook.W004",
        )
    ]


@register(Tags.database, deploy=True)
def database_pool_serves_every_thread(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Threads that wait for a slot or another place do not hold a connection."""
    pool = _database().get("OPTIONS", {}).get("pool")
    waiting = (
        settings.SANDBOX_QUEUE,
        settings.CALLS_WAITING,
        settings.GRAPHQL_WAITING,
        settings.ADMIN_WAITING,
    )
    wanted = settings.WEB_THREADS - sum(waiting)
    if not pool or pool["max_size"] >= wanted:
        return []
    return [
        Warning(
            f"{wanted} web threads share {pool['max_size']} database connections.",
            hint="Raise DATABASE_POOL_SIZE to WEB_THREADS minus the threads that wait "
            "(SANDBOX_QUEUE, CALLS_WAITING, GRAPHQL_WAITING, ADMIN_WAITING), or lower "
            "WEB_THREADS.",
            id="moonhook.W005",
        )
    ]


@register(Tags.database, deploy=True)
def database_pool_serves_every_queue_slot(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A jobs runner takes one for each slot, for the queue, schedules, messages and upkeep."""
    pool = _database().get("OPTIONS", {}).get("pool")
    wanted = settings.QUEUE_SLOTS + 4
    if not pool or pool["max_size"] >= wanted:
        return []
    return [
        Warning(
            f"A jobs runner takes {wanted} database connections and may have {pool['max_size']}.",
            hint="Raise DATABASE_POOL_SIZE to QUEUE_SLOTS + 4, or lower QUEUE_SLOTS.",
            id="moonhook.W010",
        )
    ]


@register(Tags.security, deploy=True)
def sandbox_is_complete(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report each missing layer; without seccomp, production does not start."""
    return [
        (Error if layer.name == REQUIRED_LAYER else Warning)(
            f"The sandbox's {layer.name} layer is not active: {layer.detail}.",
            hint="docs/deploy.md lists what each layer requires of the machine.",
            id="moonhook.E005" if layer.name == REQUIRED_LAYER else "moonhook.W006",
        )
        for layer in active_layers()
        if not layer.is_active
    ]


@register(Tags.security, deploy=True)
def allowed_hosts_are_listed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Error(
            "ALLOWED_HOSTS allows any Host header.",
            hint="List the host of PUBLIC_URL and the hosts that health checks use.",
            id="moonhook.E004",
        )
    ]


@register(deploy=True)
def balancers_can_notice_a_stop(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.DRAIN_SECONDS:
        return []
    return [
        Warning(
            "DRAIN_SECONDS is 0: a stopping node refuses calls before its balancer notices.",
            hint="Set DRAIN_SECONDS to more than two intervals of the balancer's health checks.",
            id="moonhook.W008",
        )
    ]


@register(deploy=True)
def codes_can_be_sent_by_sms(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.SMS_URL != "off":
        return []
    return [
        Info(
            "SMS_URL is off: login codes are sent by e-mail only.",
            hint="If that is not intended, set SMS_URL to an Apprise URL with {phone}.",
            id="moonhook.I001",
        )
    ]


@register(deploy=True)
def threads_remain_for_short_requests(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    held = settings.WEB_THREADS_HELD
    if sum(held.values()) < settings.WEB_THREADS:
        return []
    return [
        Warning(
            "Scripts, GraphQL and the admin may occupy every web thread and delay /session.",
            hint=f"Raise WEB_THREADS above {sum(held.values())}, the sum of {', '.join(held)}.",
            id="moonhook.W009",
        )
    ]
