"""Turns a run's outcome, or a problem, into the HTTP response."""

import json
from collections.abc import Iterable
from http import HTTPStatus
from math import ceil
from typing import NamedTuple
from uuid import UUID

from core.http.problems import Problem, ProblemCode, problem_document
from hooks.preferences import has_preset, prefers_no_wait
from hooks.request import Request
from scripts_engine.flows.idempotency import RepeatedReply
from scripts_engine.flows.rules_of_call import CallRules
from scripts_engine.flows.run_call import AcceptedCall
from scripts_engine.flows.run_script import FinishedRun
from scripts_engine.sandbox.contract import Outcome, OutcomeKind, Retry
from scripts_engine.sandbox.parent.endings import STATUSES_WITHOUT_BODY

_PROBLEMS = {
    OutcomeKind.FAILED: ProblemCode.SCRIPT_FAILED,
    OutcomeKind.TIMED_OUT: ProblemCode.SCRIPT_TIMED_OUT,
    OutcomeKind.OUT_OF_MEMORY: ProblemCode.SCRIPT_OUT_OF_MEMORY,
    OutcomeKind.REPLY_TOO_LARGE: ProblemCode.REPLY_TOO_LARGE,
}
# For a script that asks to be called again and does not say when.
_RETRY_SECONDS = 10


class Response(NamedTuple):
    """Headers are Latin-1 text, as WSGI wants them, each name once."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes


def reply_of(request: Request, finished: FinishedRun | RepeatedReply) -> Response:
    """The script's reply, or a problem if it gave none. Both name the run.

    The reply to a duplicate also says that it is one.
    """
    if isinstance(finished, RepeatedReply):
        return _repeated(finished)
    run_id, outcome = finished
    if outcome.reply is None:
        response = problem_of(request, _problem_of_run(outcome, run_id))
    else:
        response = Response(outcome.reply.status, outcome.reply.headers, outcome.reply.body)
    return response._replace(headers=(*response.headers, ("Moonhook-Run-Id", str(run_id))))


def _problem_of_run(outcome: Outcome, run_id: UUID) -> Problem:
    extensions = {"runId": str(run_id)}
    if not isinstance(outcome.verdict, Retry):
        return Problem(_PROBLEMS[outcome.kind], extensions=extensions)
    seconds = outcome.verdict.after_seconds
    return Problem(
        ProblemCode.SCRIPT_FAILED,
        "The script cannot answer now. Try again after the number of seconds in Retry-After.",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"Retry-After": str(_RETRY_SECONDS if seconds is None else ceil(seconds))},
        extensions=extensions,
    )


def acceptance_of(
    request: Request, rules: CallRules | None, accepted: AcceptedCall | RepeatedReply
) -> Response:
    """The reply to a call whose run is queued.

    A sender with a preset gets no body. One that asked for it with ``Prefer`` is told so.
    """
    run = str(accepted.run_id)
    headers = [("Moonhook-Run-Id", run)]
    if isinstance(accepted, RepeatedReply):
        headers.append(("Moonhook-Duplicate-Of", run))
    if prefers_no_wait(request, rules):
        headers.append(("Preference-Applied", "respond-async"))
    has_body = accepted.status not in STATUSES_WITHOUT_BODY
    if not has_body or (rules is not None and has_preset(rules)):
        return Response(accepted.status, headers, b"")
    body = json.dumps({"runId": run, "status": "Queued"}).encode()
    return Response(accepted.status, [("Content-Type", "application/json"), *headers], body)


def _repeated(reply: RepeatedReply) -> Response:
    run = str(reply.run_id)
    ours = (("Moonhook-Run-Id", run), ("Moonhook-Duplicate-Of", run))
    return Response(reply.status, (*reply.headers, *ours), reply.body)


def problem_of(request: Request, problem: Problem) -> Response:
    status, headers, body = problem_document(problem, request.request_id)
    return Response(status, headers.items(), body)
