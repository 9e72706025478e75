"""The addresses under /hook/: find the hook, answer its call, turn errors into problems."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from core.database.unavailable import DatabaseUnavailable
from core.errors import RateLimitedError
from core.http.problems import Problem, ProblemCode
from core.http.unavailable import unavailable
from core.metrics.catalogue import HOOK_REFUSALS
from hooks.authentication import call_token_of_basic_auth, hook_of_basic_auth, hook_of_url
from hooks.calls import answer_call
from hooks.refusals import Stranger, note_refusal, wrong_token_of
from hooks.replies import Response, problem_of
from hooks.request import Request
from scripts_engine.flows.record_run import RunNotQueuedError, RunNotRecordedError
from scripts_engine.not_run import NOT_RUN_ERRORS, retry_after_seconds, why_not_run
from scripts_engine.senders import RefusalReason

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="hooks", charset="UTF-8"'}
_CREDENTIAL_HEADERS = frozenset({"authorization"})
# With OPTIONS, senders of CloudEvents ask whether they may send events.
_PERMISSION_HEADER = "WebHook-Request-Origin"
# Programs send no Sec-Fetch-Dest; browsers send "empty" for ``fetch()``, "document" for a typed
# address, "report" for a violated policy. A reply is never part of a page: as a script, it would
# act on behalf of the page, which may be one of the admin's.
_DESTINATIONS = frozenset({None, "empty", "document", "report"})
_PART_OF_A_PAGE = (
    "A page may not load this address as a part of itself, such as a script or an image."
)
_NOT_QUEUED = "The call could not be stored, so it is not accepted and its script does not run."


def call_by_url(
    request: Request, organisation_id: str, script_id: str, call_token: str
) -> Response:
    """Answers a call of the hook whose call token is in the URL."""
    stranger = Stranger(ProblemCode.NOT_FOUND, {})
    if request.method == "OPTIONS":
        stranger = Stranger(ProblemCode.METHOD_NOT_ALLOWED, _allow(HOOK.methods))
    spec = hook_of_url(organisation_id, script_id, call_token)
    if spec is None or spec.hook_id is None:
        wrong_token = wrong_token_of(organisation_id, script_id, call_token)
        raise stranger.refused(RefusalReason.WRONG_TOKEN, wrong_token)
    return answer_call(request, spec, spec.hook_id, stranger=stranger, methods=HOOK.methods)


def call_by_basic_auth(request: Request, organisation_id: str, script_id: str) -> Response:
    """Answers a call of the hook whose id and call token are in the ``Authorization`` header.

    The script does not see that header.
    """
    stranger = Stranger(ProblemCode.INVALID_CREDENTIALS, _CHALLENGE)
    authorization = request.header("Authorization") or ""
    spec = hook_of_basic_auth(organisation_id, script_id, authorization)
    if spec is None or spec.hook_id is None:
        wrong_token = wrong_token_of(
            organisation_id, script_id, call_token_of_basic_auth(authorization)
        )
        raise stranger.refused(RefusalReason.WRONG_TOKEN, wrong_token)
    return answer_call(
        request,
        spec,
        spec.hook_id,
        stranger=stranger,
        methods=HOOK_SECURE.methods,
        hidden_headers=_CREDENTIAL_HEADERS,
    )


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
    """Checks what the browser asks for, and the method, and turns errors into problem documents."""
    try:
        if request.environ.get("HTTP_SEC_FETCH_DEST") not in _DESTINATIONS:
            raise Problem(ProblemCode.CROSS_ORIGIN, _PART_OF_A_PAGE)
        if request.method not in endpoint.methods and not _asks_for_permission(request, endpoint):
            raise Problem(ProblemCode.METHOD_NOT_ALLOWED, headers=_allow(endpoint.methods))
        return endpoint.view(request, *address)
    except RunNotRecordedError as error:
        # The script ran, so this is not counted as a refusal.
        not_recorded = unavailable(request, error, ProblemCode.RUN_NOT_RECORDED)
        return problem_of(request, not_recorded)
    except Problem as error:
        problem = error
    except RunNotQueuedError as error:
        problem = unavailable(request, error, ProblemCode.RUN_NOT_RECORDED, _NOT_QUEUED)
    except DatabaseUnavailable as error:
        problem = unavailable(request, error)
    except NOT_RUN_ERRORS as error:
        problem = _not_run_problem(request, error)
    except RateLimitedError as error:
        retry_after = {"Retry-After": str(error.retry_after_seconds)}
        problem = Problem(ProblemCode.RATE_LIMITED, headers=retry_after)
    HOOK_REFUSALS.labels(problem.code).inc()
    note_refusal(request, problem)
    return problem_of(request, problem)


def _asks_for_permission(request: Request, endpoint: Endpoint) -> bool:
    is_option = request.method == "OPTIONS" and endpoint is HOOK
    return is_option and request.header(_PERMISSION_HEADER) is not None


def _allow(methods: Iterable[str]) -> dict[str, str]:
    return {"Allow": ", ".join(methods)}


def _not_run_problem(request: Request, error: Exception) -> Problem:
    reason = why_not_run(error)
    if reason.problem_code is ProblemCode.UNAVAILABLE:
        return unavailable(request, error, detail=reason.text)
    retry_after = retry_after_seconds(error)
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Problem(reason.problem_code, reason.text, headers=headers)
