"""REST framework's exceptions as problem documents."""

import logging
from typing import Any

from django.http import HttpResponse
from rest_framework import exceptions

from core.http.problems import FieldError, Problem, ProblemCode, problem_response
from core.http.unavailable import DATABASE_ERRORS, unavailable

logger = logging.getLogger(__name__)


def problem_exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """Answers every exception of a REST view; what nobody expected is logged and masked."""
    request = context["request"]._request
    problem = as_problem(error)
    if isinstance(error, DATABASE_ERRORS):
        problem = unavailable(request, error)
    if problem is None:
        logger.error(
            "Unexpected error, request %s", getattr(request, "request_id", ""), exc_info=error
        )
        problem = Problem(ProblemCode.INTERNAL_ERROR)
    if problem.code is ProblemCode.METHOD_NOT_ALLOWED:
        problem.headers.setdefault("Allow", ", ".join(context["view"].allowed_methods))
    return problem_response(request, problem)


def as_problem(error: Exception) -> Problem | None:
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            return Problem(ProblemCode.VALIDATION_ERROR, errors=field_errors(error.detail))
        case exceptions.MethodNotAllowed():
            return Problem(ProblemCode.METHOD_NOT_ALLOWED)
    return None


def field_errors(detail: Any) -> list[FieldError]:
    """The errors of a flat serializer; REST framework's texts repeat no value except choices'."""
    return [
        FieldError(field=field, code=str(item.code), detail=_without_value(item))
        for field, items in detail.items()
        for item in items
    ]


def _without_value(item: exceptions.ErrorDetail) -> str:
    return "This is not one of the choices." if item.code == "invalid_choice" else str(item)
