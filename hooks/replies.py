"""Turns a run's outcome into the HTTP response."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from core.http.problems import Problem, ProblemCode, problem_response
from scripts_engine.flows.run_script import FinishedRun
from scripts_engine.sandbox.contract import OutcomeKind

_PROBLEMS = {
    OutcomeKind.FAILED: ProblemCode.SCRIPT_FAILED,
    OutcomeKind.TIMED_OUT: ProblemCode.SCRIPT_TIMED_OUT,
    OutcomeKind.OUT_OF_MEMORY: ProblemCode.SCRIPT_OUT_OF_MEMORY,
    OutcomeKind.REPLY_TOO_LARGE: ProblemCode.REPLY_TOO_LARGE,
}

# A script's page has the same origin as the admin; the sandbox directive gives it an opaque one.
_PROTECTION = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Referrer-Policy": "no-referrer",
}


def reply_of(request: HttpRequest, finished: FinishedRun) -> HttpResponse:
    """The script's reply, or a problem if it gave none. Both name the run."""
    run_id, outcome = finished
    if outcome.reply is None:
        problem = Problem(_PROBLEMS[outcome.kind], extensions={"runId": str(run_id)})
        response = problem_response(request, problem)
    else:
        response = HttpResponse(outcome.reply.body, status=outcome.reply.status)
        del response["Content-Type"]
        for name, value in outcome.reply.headers:
            response[name] = value
    response["Moonhook-Run-Id"] = str(run_id)
    return response


def protected(response: HttpResponse) -> HttpResponse:
    """Adds the headers that protect every response of a hook."""
    for name, value in _PROTECTION.items():
        response[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    if response.status_code in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        response.headers.pop("Content-Length", None)
    return response
