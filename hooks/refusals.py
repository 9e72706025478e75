"""Refused calls: what the caller is told, and what administrators can learn later.

A caller's answer says as little as it must. What explains it is noted once the answer is sent.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.utils import timezone

from core.errors import RateLimitedError
from core.http.problems import Problem, ProblemCode
from core.http.redaction import holds_secret
from hooks.authentication import canonical_uuid
from hooks.request import Request
from scripts_engine.flows.call_notes.collector import call_notes
from scripts_engine.flows.call_notes.notes import (
    KEPT_HEADERS,
    MAX_HEADER_NAMES,
    RefusedCallNote,
)
from scripts_engine.flows.refused_calls import DUPLICATE_IN_PROGRESS
from scripts_engine.flows.verify_sender import signs_url
from scripts_engine.senders import RefusalReason, headers_to_keep

# Never noted, whatever a sender's options name.
_CREDENTIAL_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
MAX_QUERY_CHARACTERS = 2_000
MAX_TOKEN_CHARACTERS = 200
# The reasons of problems that do not name one, and what was seen.
_REASONS = {
    ProblemCode.BODY_TOO_LARGE: (RefusalReason.BODY_TOO_LARGE, ""),
    ProblemCode.RATE_LIMITED: (RefusalReason.RATE_LIMITED, "more than its calls per minute"),
    ProblemCode.BUSY: (RefusalReason.BUSY, ""),
    ProblemCode.DUPLICATE_IN_PROGRESS: (RefusalReason.BUSY, DUPLICATE_IN_PROGRESS),
    ProblemCode.QUEUE_FULL: (RefusalReason.QUEUE_FULL, ""),
}


class WrongToken(NamedTuple):
    """The address of a call whose token no callable hook has."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID
    call_token: str


def wrong_token_of(organisation_id: str, script_id: str, call_token: str) -> WrongToken | None:
    """``None`` if the ids of the address are not ids."""
    organisation, script = canonical_uuid(organisation_id), canonical_uuid(script_id)
    if organisation is None or script is None:
        return None
    return WrongToken(organisation, script, call_token)


class CallRefused(Problem):
    """A problem with a reason for administrators; ``seen`` is its detail."""

    def __init__(
        self,
        reason: RefusalReason,
        code: ProblemCode,
        *,
        headers: Mapping[str, str] | None = None,
        seen: str = "",
        wrong_token: WrongToken | None = None,
    ) -> None:
        super().__init__(code, headers=headers)
        self.reason = reason
        self.seen = seen
        self.wrong_token = wrong_token


class Stranger(NamedTuple):
    """The answer to a call with a wrong token; others that must look like it use it too."""

    code: ProblemCode
    headers: Mapping[str, str]

    def refused(self, reason: RefusalReason, wrong_token: WrongToken | None = None) -> CallRefused:
        return CallRefused(reason, self.code, headers=self.headers, wrong_token=wrong_token)


def throttled(error: RateLimitedError) -> CallRefused:
    """The answer to a wrong signature of a client that had too many."""
    return CallRefused(
        RefusalReason.RATE_LIMITED,
        ProblemCode.RATE_LIMITED,
        headers={"Retry-After": str(error.retry_after_seconds)},
        seen="more than 60 wrong signatures of this client within a minute",
    )


def note_refusal(request: Request, problem: Problem) -> None:
    """Has the refusal noted after the reply, if its hook or script can be known."""
    wrong_token = None
    if isinstance(problem, CallRefused):
        reason, seen, wrong_token = problem.reason, problem.seen, problem.wrong_token
    elif problem.code in _REASONS:
        reason, seen = _REASONS[problem.code]
    else:
        return
    if wrong_token is not None:
        note = partial(_note_wrong_token, request, timezone.now(), wrong_token)
    elif request.spec is not None:
        note = partial(_note_refused, request, timezone.now(), reason, seen)
    else:
        return
    request.after_reply.append(note)


def _note_wrong_token(request: Request, at: datetime, wrong_token: WrongToken) -> None:
    call_notes.add_refused(
        RefusedCallNote(
            at=at,
            reason=RefusalReason.WRONG_TOKEN,
            detail="",
            organisation_id=wrong_token.organisation_id,
            script_id=wrong_token.script_id,
            hook_id=None,
            client_address=request.client_address,
            method=request.method,
            headers=_noted_headers(request, KEPT_HEADERS),
            query=request.query[:MAX_QUERY_CHARACTERS],
            call_token=wrong_token.call_token[:MAX_TOKEN_CHARACTERS],
        )
    )


def _noted_headers(request: Request, kept: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The names of the headers, with the values of those that are kept and are no credentials."""
    headers = request.headers[:MAX_HEADER_NAMES]
    return tuple(
        (name, value if _is_noted(name.lower(), value, kept) else "") for name, value in headers
    )


def _is_noted(name: str, value: str, kept: frozenset[str]) -> bool:
    return name in kept and name not in _CREDENTIAL_HEADERS and not holds_secret(value)


def _note_refused(request: Request, at: datetime, reason: RefusalReason, seen: str) -> None:
    spec = request.spec
    if spec is None or spec.script_id is None:
        return
    rules = spec.rules
    sender = None if rules is None else rules.sender
    url = ""
    if rules is not None and sender is not None and signs_url(sender):
        url = rules.signed_url or request.url
    sender_headers = frozenset() if sender is None else headers_to_keep(sender)
    call_notes.add_refused(
        RefusedCallNote(
            at=at,
            reason=reason,
            detail=seen,
            organisation_id=spec.organisation_id,
            script_id=spec.script_id,
            hook_id=spec.hook_id,
            client_address=request.client_address,
            method=request.method,
            headers=_noted_headers(request, KEPT_HEADERS | sender_headers),
            query=request.query,
            url=url,
            sender_headers=sender_headers,
            body=request.body,
        )
    )
