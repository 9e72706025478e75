"""What answers when no view does: problem documents, but pages for people in the admin."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from config.http.admin_pages import is_admin_page
from config.http.problems import Problem, ProblemCode, problem_response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return render(request, "400.html", status=HTTPStatus.BAD_REQUEST)
    return problem_response(request, Problem(ProblemCode.INVALID_REQUEST))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return render(request, "403.html", status=HTTPStatus.FORBIDDEN)
    return problem_response(request, Problem(ProblemCode.CROSS_ORIGIN))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_admin_page(request):
        return render(request, "404.html", status=HTTPStatus.NOT_FOUND)
    return problem_response(request, Problem(ProblemCode.NOT_FOUND))


def server_error(request: HttpRequest) -> HttpResponse:
    if is_admin_page(request):
        return render(request, "500.html", status=HTTPStatus.INTERNAL_SERVER_ERROR)
    return problem_response(request, Problem(ProblemCode.INTERNAL_ERROR))
