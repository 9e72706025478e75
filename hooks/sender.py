"""Verifies the sender of a call, and answers its handshakes."""

import time
from functools import partial
from uuid import UUID

from django.utils import timezone

from core.errors import RateLimitedError
from core.http.origin import MAX_USER_AGENT_LENGTH, Origin
from core.http.problems import ProblemCode
from core.metrics.catalogue import HANDSHAKES
from hooks.events import ProvenSender
from hooks.refusals import CallRefused, throttled
from hooks.replies import Response
from hooks.request import Request
from scripts_engine.flows.call_notes.collector import call_notes
from scripts_engine.flows.call_notes.notes import Credential, HandshakeNote
from scripts_engine.flows.failed_signatures import count_failed_signature
from scripts_engine.flows.rules_of_call import CallRules
from scripts_engine.flows.signing_secrets import store_greeted_secret
from scripts_engine.flows.verify_sender import event_id_of, verify_sender
from scripts_engine.senders import Call, Greeting, RefusalReason, Refused, Rules

_REASONS_OF_HANDSHAKES = (RefusalReason.HANDSHAKE_REFUSED, RefusalReason.NO_SECRET_SET)
_CHALLENGE = {"WWW-Authenticate": 'Signature realm="hooks"'}


def prove_sender(
    request: Request,
    hook_id: UUID,
    rules: CallRules,
    sender: Rules,
    body: bytes,
    *,
    unless_greeting: CallRefused | None,
) -> ProvenSender | Response:
    """Returns the sender that the call has proved, or the answer to its handshake.

    Raises ``CallRefused`` with one answer for all reasons, or ``unless_greeting`` if the call is
    not a handshake. Failures are counted, and answered otherwise when they are too many.
    """
    call = Call(
        method=request.method,
        url=rules.signed_url or request.url,
        query=request.query,
        headers=request.headers,
        body=body,
    )
    examined = verify_sender(hook_id, rules, sender, call, now=time.time())
    result = examined.result
    if isinstance(result, Greeting) and not _is_stored(request, hook_id, result):
        result = Refused(RefusalReason.HANDSHAKE_REFUSED, "its secret is no longer expected")
    if isinstance(result, Greeting):
        return _greet(request, hook_id, sender.preset, result)
    is_handshake = isinstance(result, Refused) and result.reason in _REASONS_OF_HANDSHAKES
    if unless_greeting is not None and not is_handshake:
        raise unless_greeting
    if isinstance(result, Refused):
        try:
            count_failed_signature(hook_id, request.client_address, rules.secrets)
        except RateLimitedError as error:
            raise throttled(error) from error
        raise CallRefused(
            result.reason, ProblemCode.INVALID_SIGNATURE, headers=_CHALLENGE, seen=result.detail
        )
    if examined.secret_id is not None:
        use = Credential(hook_id, str(examined.secret_id))
        add_use = partial(call_notes.add_use, use, timezone.now(), request.client_address)
        request.after_reply.append(add_use)
    return ProvenSender(
        sender.preset,
        result.strength,
        event_id_of(result, rules),
        result.signed_content,
        examined.secrets,
    )


def _is_stored(request: Request, hook_id: UUID, greeting: Greeting) -> bool:
    """Whether the signing secret that the handshake brought, if any, is stored."""
    if greeting.stores_secret is None:
        return True
    origin = Origin(
        client_address=request.client_address,
        user_agent=(request.header("User-Agent") or "")[:MAX_USER_AGENT_LENGTH],
        request_id=request.request_id,
    )
    return store_greeted_secret(hook_id, greeting.stores_secret, origin=origin)


def _greet(request: Request, hook_id: UUID, sender: str, greeting: Greeting) -> Response:
    HANDSHAKES.labels(sender).inc()
    note = HandshakeNote(hook_id, timezone.now(), sender, request.client_address, greeting.status)
    request.after_reply.append(partial(call_notes.add_handshake, note))
    return Response(greeting.status, greeting.headers, greeting.body)
