"""Whether this process lives, and whether it can do its work."""

from http import HTTPStatus

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from config.operations.checks import readiness
from core.http.problem_handlers import safe_methods_only
from core.server import services
from core.server.lifecycle import is_draining


@safe_methods_only
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@safe_methods_only
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and a sandbox can be had, else 503 with what is missing.

    Another service of the node that does not run is named, with 200: this one serves without it.
    A process that is about to stop says so without asking anybody.
    """
    if is_draining():
        return JsonResponse({"status": "draining"}, status=HTTPStatus.SERVICE_UNAVAILABLE)
    reasons = readiness.reasons()
    failed = {name: reason for name, reason in reasons.items() if reason is not None}
    degraded = services.reasons()
    document: dict[str, object] = {
        "status": "unavailable" if failed else "degraded" if degraded else "ok",
        "checks": {name: "failed" if name in failed else "ok" for name in reasons},
    }
    if conditions := services.conditions():
        document["services"] = conditions
    if failed or degraded:
        document["reasons"] = failed | degraded
    return JsonResponse(
        document, status=HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    )
