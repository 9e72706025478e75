"""The edge for machines: authenticate, make the event, run, reply."""

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
from scripts_engine.event import Event
from scripts_engine.flows.record_run import RunNotRecordedError
from scripts_engine.flows.run_script import RunSpec, run_script
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable

View = Callable[..., HttpResponse]

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="hooks", charset="UTF-8"'}
_OWN_CREDENTIALS = frozenset({"authorization"})


def hook_view(*methods: str) -> Callable[[View], View]:
    """Answers other methods with 405 first of all, problems in their shape, and protects all."""

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
            except Problem as problem:
                HOOK_REFUSALS.inc(problem.code)
                return protected(problem_response(request, problem))
            except RunNotRecordedError as error:
                not_recorded = unavailable(request, error, ProblemCode.RUN_NOT_RECORDED)
                return protected(problem_response(request, not_recorded))
            except (*DATABASE_ERRORS, SandboxUnavailable) as error:
                HOOK_REFUSALS.inc(ProblemCode.UNAVAILABLE)
                return protected(problem_response(request, unavailable(request, error)))

        return answer

    return decorate


@hook_view("GET", "HEAD", "POST")
def call_by_url(
    request: HttpRequest, organisation_id: str, script_id: str, call_token: str
) -> HttpResponse:
    """The address carries the token. HEAD only tells that it is right: senders probe with it."""
    spec = hook_of_url(organisation_id, script_id, call_token)
    if spec is None:
        raise Problem(ProblemCode.NOT_FOUND)
    _bind(spec)
    if request.method == "HEAD":
        return HttpResponse()
    return _run(request, spec, event_of(request))


@hook_view("POST")
def call_by_basic_auth(request: HttpRequest, organisation_id: str, script_id: str) -> HttpResponse:
    """HookID and call token in the ``Authorization`` header, which the script does not see."""
    authorization = request.META.get("HTTP_AUTHORIZATION", "")
    spec = hook_of_basic_auth(organisation_id, script_id, authorization)
    if spec is None:
        raise Problem(ProblemCode.INVALID_CREDENTIALS, headers=_CHALLENGE)
    _bind(spec)
    return _run(request, spec, event_of(request, without_headers=_OWN_CREDENTIALS))


@hook_view("GET", "HEAD", "POST")
def no_such_hook(request: HttpRequest) -> HttpResponse:
    """Any other address under /hook/: like a wrong one."""
    raise Problem(ProblemCode.NOT_FOUND)


def _bind(spec: RunSpec) -> None:
    """Names the caller in every log line from here on."""
    bind_contextvars(organisation=spec.organisation_id, script=spec.script_id, hook=spec.hook_id)


def _run(request: HttpRequest, spec: RunSpec, event: Event) -> HttpResponse:
    try:
        return reply_of(request, run_script(spec, event))
    except SandboxBusy as busy:
        raise Problem(ProblemCode.BUSY, headers={"Retry-After": str(busy.retry_after)}) from None
