"""Whether this process lives, and whether it can do its work."""

import logging
from http import HTTPStatus

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from config.http.methods import safe_methods_only
from scripts_engine.sandbox_state import Health, sandbox_health

logger = logging.getLogger(__name__)


@safe_methods_only
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@safe_methods_only
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and a sandbox can be had, else 503 with what is missing."""
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
    return sandbox_health() is not Health.UNAVAILABLE
