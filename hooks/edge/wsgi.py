"""Every path under /hook/: find the hook, have its call accepted and run, answer it.

The application does not pass through Django's handler.
"""

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple

from django.core.exceptions import DisallowedHost
from django.core.signals import got_request_exception

from accounts import credentials
from core.database.ids import KnownId
from core.database.unavailable import DatabaseUnavailable
from core.errors import RateLimitedError
from core.http.origin import REQUEST_ID_HEADER
from core.http.problem_handlers import unavailable
from core.http.problems import Problem, ProblemCode, no_such_path_problem
from core.http.slim_application import (
    Answer,
    SlimApplication,
    require_allowed_host,
    scheme_of,
    security_headers,
)
from core.logs.context import bind, bind_request
from core.metrics.requests import UNNAMED_VIEW
from hooks.acceptance import CallRefused, NetworkRefused, accept, check_network, methods_of
from hooks.edge.cors import (
    allowed_origin,
    is_preflight,
    preflight_response,
    readable_by_page,
)
from hooks.edge.http import CallRequest, CallResponse, prefers_no_wait, problem_of, response_of
from hooks.edge.refusals import (
    WrongToken,
    note_of_refusal,
    note_of_wrong_token,
    notes_of_problem,
    problem_of_refusal,
    refuse,
)
from hooks.flows.find_callable_hook import CallableHook, find_callable_hook
from hooks.flows.run_call import run_or_queue
from hooks.senders import Greeting
from scripts_engine.runs.problems import (
    NOT_RUN_ERRORS,
    ScriptProblem,
    retry_after_seconds,
    why_not_run,
)
from scripts_engine.runs.recording import RunNotQueuedError, RunNotRecordedError
from scripts_engine.runs.spec import Event

# --- The hook of a call ---------------------------------------------------------------------------

# Matches from the first of several slashes only, because a match from each is quadratic.
TOKEN_IN_PATH = re.compile(
    r"((?<!/)/+hook/+(?!secure/)[^/\s]+/+[^/\s]+/+)[^\s?\"']+", re.IGNORECASE
)
_UUID_CHARACTERS = 36


def hook_of_url(organisation_id: str, script_id: str, call_token: str) -> CallableHook | None:
    """Returns what a call of this URL runs."""
    organisation, script = canonical_uuid(organisation_id), canonical_uuid(script_id)
    if organisation is None or script is None or not _is_call_token(call_token):
        return None
    return find_callable_hook(organisation, script, call_token)


def hook_of_basic_auth(
    organisation_id: str, script_id: str, authorization: str
) -> CallableHook | None:
    """Returns what a call with ``Basic base64(HookID:CallToken)`` (RFC 7617) runs."""
    organisation, script = canonical_uuid(organisation_id), canonical_uuid(script_id)
    hook_id_text, _, call_token = _basic_credentials(authorization).partition(":")
    hook_id = canonical_uuid(hook_id_text)
    if organisation is None or script is None or hook_id is None:
        return None
    if not _is_call_token(call_token):
        return None
    return find_callable_hook(organisation, script, call_token, hook_id=hook_id)


def call_token_of_basic_auth(authorization: str) -> str:
    """The call token in Basic credentials, right or wrong; ``""`` if there is none."""
    return _basic_credentials(authorization).partition(":")[2]


def _is_call_token(text: str) -> bool:
    return credentials.is_well_formed(text, credentials.SecretKind.CALL_TOKEN)


def _basic_credentials(authorization: str) -> str:
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def canonical_uuid(text: str) -> uuid.UUID | None:
    """Parses a UUID in its canonical form of 36 characters; no other spelling is accepted."""
    return _parsed(text) if len(text) == _UUID_CHARACTERS else None


# Calls bring the same ids again and again.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> uuid.UUID | None:
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        return None
    return KnownId(parsed) if str(parsed) == text.lower() else None


_CHALLENGE = {"WWW-Authenticate": 'Basic realm="hooks", charset="UTF-8"'}
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
_ERRORS: tuple[type[Exception], ...] = (DatabaseUnavailable, RateLimitedError, *NOT_RUN_ERRORS)


# --- Addresses ------------------------------------------------------------------------------------


def _allow(methods: Iterable[str]) -> dict[str, str]:
    return {"Allow": ", ".join(methods)}


class Found(NamedTuple):
    hook: CallableHook | None
    call_token: str
    """The one that no hook has, if the hook was not found."""
    stranger: Problem
    """The answer to a wrong token; others that must look like it use it too."""


def _by_url(request: CallRequest, organisation_id: str, script_id: str, call_token: str) -> Found:
    """Finds the hook whose call token is in the URL."""
    is_usual = request.method in HOOK.methods
    hook = hook_of_url(organisation_id, script_id, call_token)
    return Found(hook, call_token, _not_found(request) if is_usual else _NOT_ALLOWED)


def _by_basic_auth(request: CallRequest, organisation_id: str, script_id: str) -> Found:
    """Finds the hook whose id and call token are in the ``Authorization`` header."""
    is_usual = request.method in HOOK_SECURE.methods
    authorization = request.header("Authorization") or ""
    hook = hook_of_basic_auth(organisation_id, script_id, authorization)
    wrong = "" if hook is not None else call_token_of_basic_auth(authorization)
    return Found(hook, wrong, _INVALID_CREDENTIALS if is_usual else _NOT_ALLOWED_SECURE)


def _no_such_hook(request: CallRequest, organisation_id: str, script_id: str) -> Found:
    """Any other address is answered like a wrong token."""
    return Found(None, "", _not_found(request))


def _not_found(request: CallRequest) -> Problem:
    return _NOT_FOUND_WITH_SLASH if request.path.endswith("/") else _NOT_FOUND


class Endpoint(NamedTuple):
    name: str
    """The view of its metrics."""
    methods: tuple[str, ...]
    """Of hooks without rules. More may run a script, if its hook's rules say so."""
    find: Callable[..., Found]
    hidden_headers: frozenset[str] = frozenset()
    """In lower case: the script does not see them."""
    methods_by_choice: tuple[str, ...] = ()

    @property
    def all_methods(self) -> tuple[str, ...]:
        return self.methods + self.methods_by_choice


_BY_CHOICE = ("PUT", "PATCH", "DELETE")
HOOK = Endpoint("hook", ("GET", "HEAD", "POST"), _by_url, methods_by_choice=_BY_CHOICE)
HOOK_SECURE = Endpoint(
    "hook-secure", ("POST",), _by_basic_auth, frozenset({"authorization"}), _BY_CHOICE
)
# The answers to strangers, which are never raised.
_NOT_FOUND = no_such_path_problem("/hook")
_NOT_FOUND_WITH_SLASH = no_such_path_problem("/hook/")
# As of a hook without rules: the method tells nobody whether a token is right.
_NOT_ALLOWED = Problem(ProblemCode.METHOD_NOT_ALLOWED, headers=_allow(HOOK.methods))
_NOT_ALLOWED_SECURE = Problem(ProblemCode.METHOD_NOT_ALLOWED, headers=_allow(HOOK_SECURE.methods))
_INVALID_CREDENTIALS = Problem(ProblemCode.INVALID_CREDENTIALS, headers=_CHALLENGE)
NO_SUCH_HOOK = Endpoint("hooks.views.no_such_hook", HOOK.methods, _no_such_hook)


class Address(NamedTuple):
    """Where a path under ``/hook/`` leads."""

    endpoint: Endpoint
    parts: list[str]
    """Organisation, script and, with the token in the URL, the token."""
    subpath: str = ""
    """What follows, with its slash."""


_NOWHERE = Address(NO_SUCH_HOOK, ["", ""])
MAX_SUBPATH_CHARACTERS = 1_000


def resolve(path: str) -> Address:
    """Takes a path that starts with ``/hook/``."""
    _, _, *parts = path.split("/", 5)
    if len(parts) < 3 or not all(parts[:3]):
        return _NOWHERE
    subpath = f"/{parts[3]}" if len(parts) > 3 else ""
    if subpath and not _is_subpath(subpath):
        return _NOWHERE
    if parts[0] == "secure":
        return Address(HOOK_SECURE, parts[1:3], subpath)
    return Address(HOOK, parts[:3], subpath)


def _is_subpath(text: str) -> bool:
    """Whether a script may get it: without control characters and segments that mean others."""
    return (
        1 < len(text) <= MAX_SUBPATH_CHARACTERS
        and text.isprintable()
        and not {".", ".."} & set(text.split("/"))
    )


# --- Answers --------------------------------------------------------------------------------------


def answer(request: CallRequest, endpoint: Endpoint, address: list[str]) -> CallResponse:
    """Checks what the browser asks for, and the method, and turns errors into problem documents."""
    try:
        if request.environ.get("HTTP_SEC_FETCH_DEST") not in _DESTINATIONS:
            raise Problem(ProblemCode.CROSS_ORIGIN, _PART_OF_A_PAGE)
        if request.method not in endpoint.all_methods and not _may_ask(request, endpoint):
            raise Problem(ProblemCode.METHOD_NOT_ALLOWED, headers=_allow(endpoint.methods))
        hook, call_token, stranger = endpoint.find(request, *address)
        if hook is None:
            return _answer_stranger(request, stranger, call_token, *address[:2])
        if request.subpath and not (hook.rules is not None and hook.rules.allow_path):
            return refuse(request, stranger if endpoint is HOOK else _not_found(request))
        return _answer_call(request, endpoint, hook, stranger)
    except RunNotRecordedError as error:
        # The script ran, so this is not counted as a refusal.
        not_recorded = unavailable(request, error, ScriptProblem.RUN_NOT_RECORDED)
        return problem_of(request, not_recorded)
    except Problem as problem:
        return refuse(request, problem)
    except _ERRORS as error:
        return refuse(request, _problem_of_error(request, error))


def _answer_stranger(
    request: CallRequest, stranger: Problem, call_token: str, organisation_id: str, script_id: str
) -> CallResponse:
    organisation, script = canonical_uuid(organisation_id), canonical_uuid(script_id)
    if organisation is None or script is None:
        return refuse(request, stranger)
    wrong_token = WrongToken(organisation, script, call_token)
    return refuse(request, stranger, note_of_wrong_token(request, wrong_token))


def _answer_call(
    request: CallRequest, endpoint: Endpoint, hook: CallableHook, stranger: Problem
) -> CallResponse:
    """Answers a call whose token matched."""
    bind(organisation=hook.organisation_id, script=hook.script_id, hook=hook.id)
    methods, hidden_headers = endpoint.all_methods, endpoint.hidden_headers
    # What is sent with credentials of its own is no page's call.
    origin = allowed_origin(request, hook.rules) if endpoint is HOOK else None
    try:
        if origin is not None and is_preflight(request):
            check_network(request, hook.rules)
            allowed = methods_of(hook.rules, endpoint.all_methods)
            return preflight_response(request, origin, allowed)
        accepted = accept(request, hook, methods=methods, hidden_headers=hidden_headers)
    except NetworkRefused as refused:
        return refuse(request, stranger, note_of_refusal(request, hook, refused))
    except CallRefused as refused:
        problem = problem_of_refusal(refused, stranger)
        note = note_of_refusal(request, hook, refused)
        return readable_by_page(refuse(request, problem, note), hook.rules, origin)
    return readable_by_page(_answer_accepted(request, hook, accepted), hook.rules, origin)


def _answer_accepted(
    request: CallRequest, hook: CallableHook, accepted: Event | Greeting | None
) -> CallResponse:
    if accepted is None:
        return CallResponse(200, [("Content-Type", "text/html; charset=utf-8")], b"")
    if isinstance(accepted, Greeting):
        return CallResponse(accepted.status, accepted.headers, accepted.body)
    return _run(request, hook, accepted)


def _run(request: CallRequest, hook: CallableHook, event: Event) -> CallResponse:
    rules = hook.rules
    try:
        no_wait = prefers_no_wait(request, rules)
        return response_of(request, rules, run_or_queue(hook, event, prefers_no_wait=no_wait))
    except RunNotRecordedError:
        raise
    except _ERRORS as error:
        problem = _problem_of_error(request, error)
        notes = notes_of_problem(request, hook, problem, event.body)
        return refuse(request, problem, *notes)


def _problem_of_error(request: CallRequest, error: Exception) -> Problem:
    """The answer to a call that did not run."""
    if isinstance(error, RunNotQueuedError):
        return unavailable(request, error, ScriptProblem.RUN_NOT_RECORDED, _NOT_QUEUED)
    if isinstance(error, DatabaseUnavailable):
        return unavailable(request, error)
    if isinstance(error, RateLimitedError):
        retry_after = {"Retry-After": str(error.retry_after_seconds)}
        return Problem(ProblemCode.RATE_LIMITED, headers=retry_after)
    reason = why_not_run(error)
    if reason.problem_code is ProblemCode.UNAVAILABLE:
        return unavailable(request, error, detail=reason.text)
    seconds = retry_after_seconds(error)
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    return Problem(reason.problem_code, reason.text, headers=headers)


def _may_ask(request: CallRequest, endpoint: Endpoint) -> bool:
    """Whether the request asks whether it may send events (CloudEvents), or a page's call."""
    if request.method != "OPTIONS" or endpoint is not HOOK:
        return False
    return request.header(_PERMISSION_HEADER) is not None or is_preflight(request)


# --- The application ------------------------------------------------------------------------------


PREFIX = "/hook/"

# Maps names in lower case to names and values.
Headers = dict[str, tuple[str, str]]

_BY_DEFAULT = {"Cache-Control": "no-store"}
# A script's page has the same origin as the admin; the sandbox directive gives it an opaque one.
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Referrer-Policy": "no-referrer",
}
_STATUSES_WITHOUT_LENGTH = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class HooksApplication(SlimApplication):
    def __init__(self) -> None:
        super().__init__()
        self._by_default = {
            scheme: _by_name((security_headers(scheme) | _BY_DEFAULT).items())
            for scheme in ("http", "https")
        }
        self._always = _by_name(_ALWAYS.items())

    def _answer(self, environ: dict[str, Any]) -> Answer:
        request = CallRequest.of(environ)
        bind_request(request.request_id)
        view, response = self._response(request)
        headers = self._headers(request, response)
        return Answer(view, response.status, headers, response.body, response.after_reply)

    def _response(self, request: CallRequest) -> tuple[str, CallResponse]:
        """The view's name for the metrics, and its response."""
        view = UNNAMED_VIEW
        try:
            require_allowed_host(request.environ)
            endpoint, address, request.subpath = resolve(request.path)
            view = endpoint.name
            return view, answer(request, endpoint, address)
        except DisallowedHost:
            return view, problem_of(request, Problem(ProblemCode.INVALID_REQUEST))
        except Exception as error:  # noqa: BLE001  (the signal's receiver logs it)
            if self._counter is not None:
                self._counter.count_exception(error)
            got_request_exception.send(sender=HooksApplication, request=request)
            return view, problem_of(request, Problem(ProblemCode.INTERNAL_ERROR))

    def _headers(self, request: CallRequest, response: CallResponse) -> list[tuple[str, str]]:
        """The response's headers, which replace those by default, and those of every response."""
        by_default = self._by_default[scheme_of(request.environ)]
        headers = [*(by_default | _by_name(response.headers) | self._always).values()]
        if response.status not in _STATUSES_WITHOUT_LENGTH:
            headers.append(("Content-Length", str(len(response.body))))
        headers.append((REQUEST_ID_HEADER, request.request_id))
        return headers


def _by_name(headers: Iterable[tuple[str, str]]) -> Headers:
    return {header[0].lower(): header for header in headers}
