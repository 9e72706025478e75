"""The addresses under /hook/: authenticate, read the event, run the script, reply."""

from collections.abc import Callable
from typing import NamedTuple

from structlog.contextvars import bind_contextvars

from core.http.problems import Problem, ProblemCode
from core.http.unavailable import DATABASE_ERRORS, unavailable
from core.metrics.catalogue import HOOK_REFUSALS
from hooks.authentication import hook_of_basic_auth, hook_of_url
from hooks.events import event_of
from hooks.replies import Response, problem_of, reply_of
from hooks.request import Request
from scripts_engine.flows.record_run import RunNotRecordedError
from scripts_engine.flows.run_script import RunSpec, run_script
from scripts_engine.not_run import NOT_RUN_ERRORS, retry_after_seconds, why_not_run

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="hooks", charset="UTF-8"'}
_CREDENTIAL_HEADERS = frozenset({"authorization"})


def call_by_url(
    request: Request, organisation_id: str, script_id: str, call_token: str
) -> Response:
    """Runs the hook whose call token is in the URL.

    HEAD, which senders use to test a URL, runs nothing.
    """
    spec = hook_of_url(organisation_id, script_id, call_token)
    if spec is None:
        raise Problem(ProblemCode.NOT_FOUND)
    _bind(spec)
    if request.method == "HEAD":
        return Response(200, [("Content-Type", "text/html; charset=utf-8")], b"")
    return reply_of(request, run_script(spec, event_of(request)))


def call_by_basic_auth(request: Request, organisation_id: str, script_id: str) -> Response:
    """Runs the hook whose id and call token are in the ``Authorization`` header.

    The script does not see that header.
    """
    authorization = request.header("Authorization") or ""
    spec = hook_of_basic_auth(organisation_id, script_id, authorization)
    if spec is None:
        raise Problem(ProblemCode.INVALID_CREDENTIALS, headers=_CHALLENGE)
    _bind(spec)
    event = event_of(request, without_headers=_CREDENTIAL_HEADERS)
    return reply_of(request, run_script(spec, event))


def no_such_hook(request: Request) -> Response:
    """Answers any other address like a wrong token."""
    raise Problem(ProblemCode.NOT_FOUND)


class Endpoint(NamedTuple):
    name: str
    """The view of its metrics."""
    methods: tuple[str, ...]
    view: Callable[..., Response]


HOOK = Endpoint("hook", ("GET", "HEAD", "POST"), call_by_url)
HOOK_SECURE = Endpoint("hook-secure", ("POST",), call_by_basic_auth)
NO_SUCH_HOOK = Endpoint("hooks.views.no_such_hook", ("GET", "HEAD", "POST"), no_such_hook)


def resolve(path: str) -> tuple[Endpoint, list[str]]:
    """Returns the endpoint of a path that starts with ``/hook/``, and its view's arguments."""
    parts = path.split("/")[2:]
    if len(parts) != 3 or not all(parts):
        return NO_SUCH_HOOK, []
    if parts[0] == "secure":
        return HOOK_SECURE, parts[1:]
    return HOOK, parts


def answer(request: Request, endpoint: Endpoint, address: list[str]) -> Response:
    """Checks the method first, and turns errors into problem documents."""
    try:
        if request.method not in endpoint.methods:
            allowed = {"Allow": ", ".join(endpoint.methods)}
            raise Problem(ProblemCode.METHOD_NOT_ALLOWED, headers=allowed)
        return endpoint.view(request, *address)
    except RunNotRecordedError as error:
        # The script ran, so this is not counted as a refusal.
        not_recorded = unavailable(request, error, ProblemCode.RUN_NOT_RECORDED)
        return problem_of(request, not_recorded)
    except Problem as error:
        problem = error
    except DATABASE_ERRORS as error:
        problem = unavailable(request, error)
    except NOT_RUN_ERRORS as error:
        problem = _not_run_problem(request, error)
    HOOK_REFUSALS.labels(problem.code).inc()
    return problem_of(request, problem)


def _bind(spec: RunSpec) -> None:
    """Adds the ids of the hook to every later log line of this request."""
    bind_contextvars(organisation=spec.organisation_id, script=spec.script_id, hook=spec.hook_id)


def _not_run_problem(request: Request, error: Exception) -> Problem:
    reason = why_not_run(error)
    if reason.problem_code is ProblemCode.UNAVAILABLE:
        return unavailable(request, error, detail=reason.text)
    retry_after = retry_after_seconds(error)
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Problem(reason.problem_code, reason.text, headers=headers)
