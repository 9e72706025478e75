"""What answers when no view does: problem documents, but pages for people in the admin."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from core.http.admin_pages import is_admin_page
from core.http.admin_policy import set_admin_policy
from core.http.problems import Problem, ProblemCode, problem_response


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
    """Render the page with the admin's policy: a wrong Host is refused before its middleware."""
    response = render(request, template, status=status)
    set_admin_policy(response)
    return response
