"""Problem documents for errors outside views, wrong methods, outages and REST's exceptions."""

import logging
from collections.abc import Callable
from enum import StrEnum
from functools import cache, wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from core.database.unavailable import DatabaseUnavailable
from core.http.admin_pages import is_admin_page, set_admin_policy
from core.http.bulkhead import BulkheadFullError, busy_problem
from core.http.origin import NamedRequest, request_id_of
from core.http.problems import (
    FieldError,
    Problem,
    ProblemCode,
    no_such_path_problem,
    problem_response,
)

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 5

Handler = Callable[[HttpRequest], HttpResponseBase]
View = Callable[..., HttpResponseBase]


def unavailable(
    request: NamedRequest,
    error: BaseException,
    code: StrEnum = ProblemCode.UNAVAILABLE,
    detail: str = "",
) -> Problem:
    """Return the problem that answers the request, and log the error without a traceback."""
    logger.error(
        "%s: %s %s, request %s: %s",
        code,
        request.method,
        request.path,
        request_id_of(request),
        " ".join(str(error).split()) or type(error).__name__,
    )
    return Problem(code, detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


class UnavailableMiddleware:
    """Middleware that answers database errors and full bulkheads where the view does not."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, BulkheadFullError):
            return _answer(request, busy_problem(error))
        if isinstance(error, DatabaseUnavailable):
            return _answer(request, unavailable(request, error))
        return None


def answering_outages(handler: Handler) -> Handler:
    """Wrap a middleware that queries the database: ``process_exception`` gets errors of views."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        try:
            return handler(request)
        except DatabaseUnavailable as error:
            return _answer(request, unavailable(request, error))

    return answer


def _answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    if is_admin_page(request):
        return _outage_page(problem, request)
    return problem_response(request, problem)


def busy_page(error: BulkheadFullError) -> HttpResponse:
    """The 503 page for a request that is not authenticated yet; makes no query, renders once."""
    response = HttpResponse(_busy_content(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    response["Retry-After"] = str(error.retry_after_seconds)
    return response


@cache
def _busy_content() -> bytes:
    return render_to_string("503.html", {"is_busy": True}).encode()


def _outage_page(problem: Problem, request: HttpRequest) -> HttpResponse:
    context = {"is_busy": problem.code == ProblemCode.BUSY}
    response = render(request, "503.html", context, status=HTTPStatus.SERVICE_UNAVAILABLE)
    response["Retry-After"] = problem.headers["Retry-After"]
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "400.html", HTTPStatus.BAD_REQUEST)
    return problem_response(request, Problem(ProblemCode.INVALID_REQUEST))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        told = getattr(exception, "told", "")
        return _page(request, "403.html", HTTPStatus.FORBIDDEN, {"told": told})
    return problem_response(request, Problem(ProblemCode.CROSS_ORIGIN))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "404.html", HTTPStatus.NOT_FOUND)
    return no_such_path(request)


@csrf_exempt
def no_such_path(request: HttpRequest, **_parts: str) -> HttpResponse:
    return problem_response(request, no_such_path_problem(request.path_info))


def server_error(request: HttpRequest) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "500.html", HTTPStatus.INTERNAL_SERVER_ERROR)
    return problem_response(request, Problem(ProblemCode.INTERNAL_ERROR))


def _page(
    request: HttpRequest,
    template: str,
    status: HTTPStatus,
    context: dict[str, Any] | None = None,
) -> HttpResponse:
    """Render the page with the admin's policy: a wrong Host is refused before the middleware."""
    response = render(request, template, context, status=status)
    set_admin_policy(request, response)
    return response


def safe_methods_only(view: View) -> View:
    """Decorator: answers methods other than GET and HEAD with a 405 problem."""

    @csrf_exempt
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method not in {"GET", "HEAD"}:
            problem = Problem(ProblemCode.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
            return problem_response(request, problem)
        return view(request, *args, **kwargs)

    return answer


def problem_exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """REST framework's exception handler."""
    request = context["request"]._request
    return problem_response(request, problem_of(error, request))


def problem_of(error: Exception, request: HttpRequest) -> Problem:
    """Turn every exception of a REST view into a problem; unexpected ones are logged and masked."""
    problem = as_problem(error)
    if isinstance(error, DatabaseUnavailable):
        problem = unavailable(request, error)
    if problem is None:
        logger.error("Unexpected error, request %s", request_id_of(request), exc_info=error)
        problem = Problem(ProblemCode.INTERNAL_ERROR)
    return problem


def as_problem(error: Exception) -> Problem | None:
    """The problem of an expected exception, or ``None``."""
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            return Problem(ProblemCode.VALIDATION_ERROR, errors=field_errors(error.detail))
        case exceptions.MethodNotAllowed():
            return Problem(ProblemCode.METHOD_NOT_ALLOWED)
    return None


def field_errors(detail: Any) -> list[FieldError]:
    """The errors of a flat serializer.

    REST framework's messages repeat values only of choices, whose fields have their own.
    """
    return [
        FieldError(field=field, code=str(item.code), detail=str(item))
        for field, items in detail.items()
        for item in items
    ]
