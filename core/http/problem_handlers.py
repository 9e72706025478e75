"""Problem documents for errors outside views, wrong methods and REST framework's exceptions."""

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from core.database.unavailable import DatabaseUnavailable
from core.http.admin_pages import is_admin_page, set_admin_policy
from core.http.problems import FieldError, Problem, ProblemCode, problem_response
from core.http.request_id import request_id_of
from core.http.unavailable import unavailable

logger = logging.getLogger(__name__)

View = Callable[..., HttpResponseBase]


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "400.html", HTTPStatus.BAD_REQUEST)
    return problem_response(request, Problem(ProblemCode.INVALID_REQUEST))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "403.html", HTTPStatus.FORBIDDEN)
    return problem_response(request, Problem(ProblemCode.CROSS_ORIGIN))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "404.html", HTTPStatus.NOT_FOUND)
    return problem_response(request, Problem(ProblemCode.NOT_FOUND))


def server_error(request: HttpRequest) -> HttpResponse:
    if is_admin_page(request):
        return _page(request, "500.html", HTTPStatus.INTERNAL_SERVER_ERROR)
    return problem_response(request, Problem(ProblemCode.INTERNAL_ERROR))


def _page(request: HttpRequest, template: str, status: HTTPStatus) -> HttpResponse:
    """Render the page with the admin's policy: a wrong Host is refused before the middleware."""
    response = render(request, template, status=status)
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
    """The errors of a flat serializer. REST framework's messages repeat values only of choices."""
    return [
        FieldError(field=field, code=str(item.code), detail=_without_value(item))
        for field, items in detail.items()
        for item in items
    ]


def _without_value(item: exceptions.ErrorDetail) -> str:
    return "This is not one of the choices." if item.code == "invalid_choice" else str(item)
