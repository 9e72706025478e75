"""503 for requests that meet an unavailable database or a full bulkhead."""

import logging
from collections.abc import Callable
from functools import cache
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string

from core.database.unavailable import DatabaseUnavailable
from core.http.admin_pages import is_admin_page
from core.http.bulkhead import BulkheadFullError, busy_problem
from core.http.problems import Problem, ProblemCode, problem_response
from core.http.request_id import NamedRequest, request_id_of

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 5

Handler = Callable[[HttpRequest], HttpResponseBase]


def unavailable(
    request: NamedRequest,
    error: BaseException,
    code: ProblemCode = ProblemCode.UNAVAILABLE,
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
        return _page(problem, request)
    return problem_response(request, problem)


def busy_page(error: BulkheadFullError) -> HttpResponse:
    """The 503 page for a request that is not authenticated yet; makes no query, renders once."""
    response = HttpResponse(_busy_content(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    response["Retry-After"] = str(error.retry_after_seconds)
    return response


@cache
def _busy_content() -> bytes:
    return render_to_string("503.html", {"is_busy": True}).encode()


def _page(problem: Problem, request: HttpRequest) -> HttpResponse:
    context = {"is_busy": problem.code == ProblemCode.BUSY}
    response = render(request, "503.html", context, status=HTTPStatus.SERVICE_UNAVAILABLE)
    response["Retry-After"] = problem.headers["Retry-After"]
    return response
