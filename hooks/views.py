"""The HTTP endpoints of hooks: authenticate, read the event, run the script, reply."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from structlog.contextvars import bind_contextvars

from core.http.problems import Problem, ProblemCode, problem_response
from core.http.unavailable import DATABASE_ERRORS, unavailable
from core.metrics.catalogue import HOOK_REFUSALS
from hooks.authentication import hook_of_basic_auth, hook_of_url
from hooks.events import event_of
from hooks.replies import protected, reply_of
from scripts_engine.flows.record_run import RunNotRecordedError
from scripts_engine.flows.run_script import RunSpec, run_script
from scripts_engine.not_run import NOT_RUN_ERRORS, retry_after_seconds, why_not_run

View = Callable[..., HttpResponse]

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="hooks", charset="UTF-8"'}
_CREDENTIAL_HEADERS = frozenset({"authorization"})


def hook_view(*methods: str) -> Callable[[View], View]:
    """Decorates a view: checks the method first, and turns errors into problem documents.

    Every response gets the protective headers.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def answer(request: HttpRequest, **address: str) -> HttpResponse:
            try:
                if request.method not in methods:
                    raise Problem(
                        ProblemCode.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(methods)}
                    )
                return protected(view(request, **address))
            except RunNotRecordedError as error:
                # The script ran, so this is not counted as a refusal.
                not_recorded = unavailable(request, error, ProblemCode.RUN_NOT_RECORDED)
                return protected(problem_response(request, not_recorded))
            except Problem as error:
                problem = error
            except DATABASE_ERRORS as error:
                problem = unavailable(request, error)
            except NOT_RUN_ERRORS as error:
                problem = _not_run_problem(request, error)
            HOOK_REFUSALS.labels(problem.code).inc()
            return protected(problem_response(request, problem))

        return answer

    return decorate


@hook_view("GET", "HEAD", "POST")
def call_by_url(
    request: HttpRequest, organisation_id: str, script_id: str, call_token: str
) -> HttpResponse:
    """Runs the hook whose call token is in the URL.

    HEAD, which senders use to test a URL, runs nothing.
    """
    spec = hook_of_url(organisation_id, script_id, call_token)
    if spec is None:
        raise Problem(ProblemCode.NOT_FOUND)
    _bind(spec)
    if request.method == "HEAD":
        return HttpResponse()
    return reply_of(request, run_script(spec, event_of(request)))


@hook_view("POST")
def call_by_basic_auth(request: HttpRequest, organisation_id: str, script_id: str) -> HttpResponse:
    """Runs the hook whose id and call token are in the ``Authorization`` header.

    The script does not see that header.
    """
    authorization = request.META.get("HTTP_AUTHORIZATION", "")
    spec = hook_of_basic_auth(organisation_id, script_id, authorization)
    if spec is None:
        raise Problem(ProblemCode.INVALID_CREDENTIALS, headers=_CHALLENGE)
    _bind(spec)
    event = event_of(request, without_headers=_CREDENTIAL_HEADERS)
    return reply_of(request, run_script(spec, event))


@hook_view("GET", "HEAD", "POST")
def no_such_hook(request: HttpRequest) -> HttpResponse:
    """Answers any other address under /hook/ like a wrong token."""
    raise Problem(ProblemCode.NOT_FOUND)


def _bind(spec: RunSpec) -> None:
    """Adds the ids of the hook to every later log line of this request."""
    bind_contextvars(organisation=spec.organisation_id, script=spec.script_id, hook=spec.hook_id)


def _not_run_problem(request: HttpRequest, error: Exception) -> Problem:
    reason = why_not_run(error)
    if reason.problem_code is ProblemCode.UNAVAILABLE:
        return unavailable(request, error, detail=reason.text)
    retry_after = retry_after_seconds(error)
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Problem(reason.problem_code, reason.text, headers=headers)
