"""Refused calls: what the caller is told, and what administrators can learn later.

A caller's answer says as little as it must. What explains it is noted once the answer is sent.
"""

import uuid
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from django.utils import timezone

from core.http.problems import Problem, ProblemCode
from core.http.redaction import holds_secret
from hooks.acceptance import CallRefused, SignatureRefused
from hooks.edge.http import CallRequest, CallResponse, problem_of
from hooks.flows.call_notes import call_notes
from hooks.flows.find_callable_hook import CallableHook
from hooks.flows.refused_calls import DUPLICATE_IN_PROGRESS
from hooks.flows.stored_notes import (
    KEPT_HEADERS,
    MAX_HEADER_NAMES,
    RefusedCallNote,
)
from hooks.metrics import HOOK_REFUSALS
from hooks.problems import CallProblem
from hooks.senders import RefusalReason, headers_to_keep
from jobs.queue.queue_limit import QueueProblem

# Never noted, whatever a sender's options name.
_CREDENTIAL_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
MAX_QUERY_CHARACTERS = 2_000
MAX_TOKEN_CHARACTERS = 200
_SIGNATURE_CHALLENGE = {"WWW-Authenticate": 'Signature realm="hooks"'}
# Why an accepted call did not run, and what was seen, by the problem that its caller gets.
_REASONS: dict[StrEnum, tuple[RefusalReason, str]] = {
    ProblemCode.RATE_LIMITED: (RefusalReason.RATE_LIMITED, "more than its calls per minute"),
    ProblemCode.BUSY: (RefusalReason.BUSY, ""),
    CallProblem.DUPLICATE_IN_PROGRESS: (RefusalReason.BUSY, DUPLICATE_IN_PROGRESS),
    QueueProblem.QUEUE_FULL: (RefusalReason.QUEUE_FULL, ""),
}


class WrongToken(NamedTuple):
    """The address of a call whose token no callable hook has."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID
    call_token: str


def problem_of_refusal(refused: CallRefused, stranger: Problem) -> Problem:
    """What the caller is told; ``stranger`` is the answer to a wrong token."""
    if isinstance(refused, SignatureRefused):
        return Problem(CallProblem.INVALID_SIGNATURE, headers=_SIGNATURE_CHALLENGE)
    match refused.reason:
        case RefusalReason.METHOD_NOT_ALLOWED:
            allowed = {"Allow": ", ".join(refused.allowed_methods)}
            return Problem(ProblemCode.METHOD_NOT_ALLOWED, headers=allowed)
        case RefusalReason.BODY_TOO_LARGE:
            text = f"A payload may have at most {refused.max_body_bytes} bytes."
            return Problem(ProblemCode.BODY_TOO_LARGE, text)
        case RefusalReason.RATE_LIMITED:
            retry_after = {"Retry-After": str(refused.retry_after_seconds)}
            return Problem(ProblemCode.RATE_LIMITED, headers=retry_after)
    return stranger


def refuse(request: CallRequest, problem: Problem, *notes: Callable[[], None]) -> CallResponse:
    """The answer to a call that ran nothing; ``notes`` are called after it."""
    HOOK_REFUSALS.labels(problem.code).inc()
    return problem_of(request, problem)._replace(after_reply=notes)


# --- Notes ----------------------------------------------------------------------------------------


def note_of_wrong_token(request: CallRequest, wrong: WrongToken) -> Callable[[], None]:
    return partial(_note_wrong_token, request, timezone.now(), wrong)


def note_of_refusal(
    request: CallRequest, hook: CallableHook, refused: CallRefused
) -> Callable[[], None]:
    reason, seen = refused.reason, refused.seen
    return partial(_note_refused, request, timezone.now(), hook, reason, seen, refused.body)


def notes_of_problem(
    request: CallRequest, hook: CallableHook, problem: Problem, body: bytes
) -> tuple[Callable[[], None], ...]:
    """The note of an accepted call that did not run, if that was due to a limit."""
    if problem.code not in _REASONS:
        return ()
    reason, seen = _REASONS[problem.code]
    return (partial(_note_refused, request, timezone.now(), hook, reason, seen, body),)


def _note_wrong_token(request: CallRequest, at: datetime, wrong_token: WrongToken) -> None:
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


def _note_refused(
    request: CallRequest,
    at: datetime,
    hook: CallableHook,
    reason: RefusalReason,
    seen: str,
    body: bytes | None,
) -> None:
    sender = None if hook.rules is None else hook.rules.sender
    sender_headers = frozenset() if sender is None else headers_to_keep(sender.rules)
    call_notes.add_refused(
        RefusedCallNote(
            at=at,
            reason=reason,
            detail=seen,
            organisation_id=hook.organisation_id,
            script_id=hook.script_id,
            hook_id=hook.id,
            client_address=request.client_address,
            method=request.method,
            headers=_noted_headers(request, KEPT_HEADERS | sender_headers),
            query=request.query,
            subpath=request.subpath,
            url=sender.signed_url or request.url if sender and sender.signs_url else "",
            sender_headers=sender_headers,
            body=body,
        )
    )


def _noted_headers(request: CallRequest, kept: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The names of the headers, with the values of those that are kept and are no credentials."""
    headers = request.headers[:MAX_HEADER_NAMES]
    return tuple(
        (name, value if _is_noted(name.lower(), value, kept) else "") for name, value in headers
    )


def _is_noted(name: str, value: str, kept: frozenset[str]) -> bool:
    return name in kept and name not in _CREDENTIAL_HEADERS and not holds_secret(value)
