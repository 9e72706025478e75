"""GET /metrics."""

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

from core.http.origin import client_address
from core.http.problem_handlers import safe_methods_only
from core.http.problems import Problem, ProblemCode, problem_response
from core.metrics.exposition import CONTENT_TYPE, exposition

REALM = 'Bearer realm="metrics"'


@safe_methods_only
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Returns the metrics of all processes of this node.

    Answers 404 if metrics are off or the client's address is not allowed.
    """
    if not settings.ARE_METRICS_ON or not _is_from_allowed_network(request):
        return problem_response(request, Problem(ProblemCode.NOT_FOUND))
    if settings.METRICS_TOKEN and not _has_token(request):
        problem = Problem(ProblemCode.NOT_AUTHENTICATED, headers={"WWW-Authenticate": REALM})
        return problem_response(request, problem)
    return HttpResponse(exposition(), content_type=CONTENT_TYPE)


def _is_from_allowed_network(request: HttpRequest) -> bool:
    if not settings.METRICS_NETWORKS:
        return True
    address = client_address(request)
    return bool(address) and any(
        ip_address(address) in network for network in settings.METRICS_NETWORKS
    )


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(
        token.strip().encode(errors="replace"), settings.METRICS_TOKEN.encode()
    )
