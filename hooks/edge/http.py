"""A call of a hook as the web server passes it on, and the responses to it."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from itertools import groupby
from math import ceil
from typing import Any, NamedTuple, Self
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.core.handlers.wsgi import get_path_info
from django.http.request import HttpHeaders
from django.utils.functional import cached_property

from core.http.body import BodyIncomplete, read_body_of
from core.http.origin import MAX_USER_AGENT_LENGTH, Origin, client_address_of, new_request_id
from core.http.problems import Problem, ProblemCode, problem_document
from hooks.flows.idempotency import RepeatedReply
from hooks.flows.run_call import AcceptedCall
from hooks.rules import CallRules
from scripts_engine.runs.execution import FinishedRun
from scripts_engine.runs.problems import ScriptProblem
from scripts_engine.sandbox import STATUSES_WITHOUT_BODY, Outcome, OutcomeKind, Retry


@dataclass
class CallRequest:
    """A request of which nothing is parsed before it is asked for."""

    environ: dict[str, Any]
    method: str
    path: str
    """Decoded, with bytes that are not UTF-8 still percent-encoded."""
    request_id: str
    subpath: str = ""
    """The part of the path after the hook's address; ``""`` without one."""

    @classmethod
    def of(cls, environ: dict[str, Any]) -> Self:
        method: str = environ["REQUEST_METHOD"]
        return cls(environ, method.upper(), get_path_info(environ), new_request_id())

    @property
    def query(self) -> str:
        """The query string, still encoded."""
        text: str = self.environ.get("QUERY_STRING", "")
        return text

    @property
    def url(self) -> str:
        """The URL under ``PUBLIC_URL``, with path and query as the client sent them, undecoded.

        A request target in absolute form (RFC 9112, section 3.2.2) gives its path and query alone.
        """
        target: str | None = self.environ.get("RAW_URI")
        if target is None:
            # A server that is not gunicorn: percent-encoded again, as clients usually do it.
            target = quote(self.environ["PATH_INFO"].encode("latin-1"))
            target += f"?{self.query}" if self.query else ""
        elif not target.startswith("/"):
            target = "/" + target.partition("://")[2].partition("/")[2]
        return f"{settings.PUBLIC_URL}{target}"

    @cached_property
    def client_address(self) -> str:
        return client_address_of(self.environ)

    def header(self, name: str) -> str | None:
        """The value of a header, named as in ``X-Signature``, as Latin-1 text."""
        value: str | None = self.environ.get(HttpHeaders.to_wsgi_name(name))
        return value

    @cached_property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Each header's name, in title case, and value."""
        entries = self.environ.items()
        return tuple([(name, value) for key, value in entries if (name := _header_name(key))])

    @property
    def origin(self) -> Origin:
        user_agent = (self.header("User-Agent") or "")[:MAX_USER_AGENT_LENGTH]
        return Origin(self.client_address, user_agent, self.request_id)

    def read_body(self, max_bytes: int) -> bytes:
        """Reads the bytes that were sent, unparsed; call it once.

        Raises ``BodyTooLarge``, or ``Problem`` if they are incomplete.
        """
        try:
            return read_body_of(self.environ, max_bytes)
        except BodyIncomplete:
            raise Problem(
                ProblemCode.MALFORMED_BODY, "The body is incomplete or malformed."
            ) from None


@lru_cache(maxsize=1024)
def _header_name(key: str) -> str | None:
    return HttpHeaders.parse_header_name(key)


# --- Responses ------------------------------------------------------------------------------------


_PROBLEMS = {
    OutcomeKind.FAILED: ScriptProblem.SCRIPT_FAILED,
    OutcomeKind.TIMED_OUT: ScriptProblem.SCRIPT_TIMED_OUT,
    OutcomeKind.OUT_OF_MEMORY: ScriptProblem.SCRIPT_OUT_OF_MEMORY,
    OutcomeKind.REPLY_TOO_LARGE: ScriptProblem.REPLY_TOO_LARGE,
}
# For a script that asks to be called again and does not say when.
_RETRY_SECONDS = 10
MAX_PREFER_CHARACTERS = 1000

# A name or value, a quoted value, or one of = ; and the comma.
_LEXEME = re.compile(r"""[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[^"\\]|\\.)*"|[=;,])[ \t]*""")
_SENDER_WITHOUT_PRESET = "hmac"


class CallResponse(NamedTuple):
    """Headers are Latin-1 text, as WSGI wants them, each name once."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes
    after_reply: Sequence[Callable[[], None]] = ()
    """Called when the reply has been sent."""


def response_of(
    request: CallRequest,
    rules: CallRules | None,
    result: FinishedRun | AcceptedCall | RepeatedReply,
) -> CallResponse:
    """A duplicate gets what the first delivery got, whichever way the hook replies now."""
    if isinstance(result, FinishedRun) or (
        isinstance(result, RepeatedReply) and not result.was_accepted
    ):
        return reply_of(request, result)
    return acceptance_of(request, rules, result)


def reply_of(request: CallRequest, finished: FinishedRun | RepeatedReply) -> CallResponse:
    """The script's reply, or a problem if it gave none. Both name the run.

    The reply to a duplicate also says that it is one.
    """
    if isinstance(finished, RepeatedReply):
        return _repeated(finished)
    run_id, outcome = finished
    if outcome.reply is None:
        response = problem_of(request, _problem_of_run(outcome, run_id))
    else:
        response = CallResponse(outcome.reply.status, outcome.reply.headers, outcome.reply.body)
    return response._replace(headers=(*response.headers, ("Moonhook-Run-Id", str(run_id))))


def _problem_of_run(outcome: Outcome, run_id: UUID) -> Problem:
    extensions = {"runId": str(run_id)}
    if not isinstance(outcome.verdict, Retry):
        return Problem(_PROBLEMS[outcome.kind], extensions=extensions)
    seconds = outcome.verdict.after_seconds
    return Problem(
        ScriptProblem.SCRIPT_FAILED,
        "The script cannot answer now. Try again after the number of seconds in Retry-After.",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"Retry-After": str(_RETRY_SECONDS if seconds is None else ceil(seconds))},
        extensions=extensions,
    )


def acceptance_of(
    request: CallRequest, rules: CallRules | None, accepted: AcceptedCall | RepeatedReply
) -> CallResponse:
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
        return CallResponse(accepted.status, headers, b"")
    body = json.dumps({"runId": run, "status": "Queued"}).encode()
    return CallResponse(accepted.status, [("Content-Type", "application/json"), *headers], body)


def _repeated(reply: RepeatedReply) -> CallResponse:
    run = str(reply.run_id)
    ours = (("Moonhook-Run-Id", run), ("Moonhook-Duplicate-Of", run))
    return CallResponse(reply.status, (*reply.headers, *ours), reply.body)


def problem_of(request: CallRequest, problem: Problem) -> CallResponse:
    status, headers, body = problem_document(problem, request.request_id)
    return CallResponse(status, headers.items(), body)


# --- The ``Prefer`` header (RFC 7240) -------------------------------------------------------------


def prefers_no_wait(request: CallRequest, rules: CallRules | None) -> bool:
    """Whether the caller asks for ``respond-async``.

    Ignored if the header is malformed, and for senders with a preset, which expect what the
    preset says.
    """
    header = request.header("Prefer")
    if header is None or (rules is not None and has_preset(rules)):
        return False
    return ["respond-async"] in _preferences(header)


def has_preset(rules: CallRules) -> bool:
    """Whether the sender is one that Moonhook knows, rather than the options of a hook."""
    return rules.sender is not None and rules.sender.rules.preset != _SENDER_WITHOUT_PRESET


def _preferences(header: str) -> list[list[str]]:
    """Each preference as its name, or its name and value; empty if the header is malformed."""
    lexemes = _lexemes(header)
    found = []
    for preference in _split(lexemes, ","):
        name_and_value, *parameters = list(_split(preference, ";")) or [[]]
        if not all(map(_is_pair, (name_and_value, *parameters))):
            return []
        found.append([part.lower() for part in name_and_value if part not in ("=", '""')])
    return found


def _lexemes(header: str) -> list[str]:
    found, at = [], 0
    while at < len(header) <= MAX_PREFER_CHARACTERS:
        lexeme = _LEXEME.match(header, at)
        if lexeme is None:
            return []
        found.append(lexeme[1])
        at = lexeme.end()
    return found


def _split(lexemes: Sequence[str], separator: str) -> list[list[str]]:
    """The stretches between separators; RFC 9110 allows empty ones, which are left out."""
    groups = groupby(lexemes, lambda each: each == separator)
    return [list(group) for is_separator, group in groups if not is_separator]


def _is_pair(lexemes: Sequence[str]) -> bool:
    """A name, with or without a value, which may be empty."""
    if not lexemes or lexemes[0] == "=" or lexemes[0].startswith('"'):
        return False
    return len(lexemes) == 1 or (lexemes[1] == "=" and len(lexemes) <= 3)
