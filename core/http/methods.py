from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from core.http.problems import Problem, ProblemCode, problem_response

View = Callable[..., HttpResponseBase]


def safe_methods_only(view: View) -> View:
    """GET and HEAD; others are answered with 405 as a problem, before anything else."""

    @csrf_exempt
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method not in {"GET", "HEAD"}:
            problem = Problem(ProblemCode.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
            return problem_response(request, problem)
        return view(request, *args, **kwargs)

    return answer
