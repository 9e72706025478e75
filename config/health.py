"""Whether this process lives, and whether it can do its work."""

import logging
from http import HTTPStatus

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from config.draining import is_draining
from config.http.methods import safe_methods_only
from scripts_engine.sandbox.pool import SandboxBusy, SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_pool

logger = logging.getLogger(__name__)

# Sandboxes serve one tenant each; the probe is one of its own.
_TENANT = "readyz"


@safe_methods_only
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@safe_methods_only
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and a sandbox can be had, else 503 with what is missing.

    A process that is about to stop says so without asking anybody.
    """
    if is_draining():
        return JsonResponse({"status": "draining"}, status=HTTPStatus.SERVICE_UNAVAILABLE)
    checks = {"database": _database_answers(), "sandbox": _sandbox_is_ready()}
    is_ready = all(checks.values())
    return JsonResponse(
        {
            "status": "ok" if is_ready else "unavailable",
            "checks": {name: "ok" if passed else "failed" for name, passed in checks.items()},
        },
        status=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE,
    )


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.exception("The database does not answer")
        return False
    return True


def _sandbox_is_ready() -> bool:
    try:
        sandbox_pool().check_syntax(_TENANT, b"", "readyz")
    except SandboxBusy:
        return True
    except SandboxUnavailable:
        logger.exception("No sandbox can be had")
        return False
    return True
