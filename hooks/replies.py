"""Turns a run's outcome, or a problem, into the HTTP response."""

from collections.abc import Iterable
from typing import NamedTuple

from core.http.problems import Problem, ProblemCode, problem_document
from hooks.request import Request
from scripts_engine.flows.run_script import FinishedRun
from scripts_engine.sandbox.contract import OutcomeKind

_PROBLEMS = {
    OutcomeKind.FAILED: ProblemCode.SCRIPT_FAILED,
    OutcomeKind.TIMED_OUT: ProblemCode.SCRIPT_TIMED_OUT,
    OutcomeKind.OUT_OF_MEMORY: ProblemCode.SCRIPT_OUT_OF_MEMORY,
    OutcomeKind.REPLY_TOO_LARGE: ProblemCode.REPLY_TOO_LARGE,
}


class Response(NamedTuple):
    """Headers are Latin-1 text, as WSGI wants them, each name once."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes


def reply_of(request: Request, finished: FinishedRun) -> Response:
    """The script's reply, or a problem if it gave none. Both name the run."""
    run_id, outcome = finished
    if outcome.reply is None:
        problem = Problem(_PROBLEMS[outcome.kind], extensions={"runId": str(run_id)})
        response = problem_of(request, problem)
    else:
        response = Response(outcome.reply.status, outcome.reply.headers, outcome.reply.body)
    return response._replace(headers=(*response.headers, ("Moonhook-Run-Id", str(run_id))))


def problem_of(request: Request, problem: Problem) -> Response:
    status, headers, body = problem_document(problem, request.request_id)
    return Response(status, headers.items(), body)
