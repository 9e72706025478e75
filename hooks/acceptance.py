"""Whether a call of a hook may run its script: one order of checks, live and replayed.

The hook's methods, size, handshake and signature; a live call has to come from an allowed network
first. The limits of its run come after (``hooks.flows.run_call``). The first refusal ends it.
"""

import time
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from django.conf import settings
from django.utils import timezone

from accounts.addresses import is_within
from accounts.rate_limits.limiter import hit
from accounts.rate_limits.windows import FAILED_SIGNATURES_OF_CLIENT
from core.errors import RateLimitedError
from core.http.body import BodyTooLarge
from core.http.origin import Origin, network_of
from core.http.redaction import holds_secret
from hooks.call_sender import CallSender
from hooks.flows.call_notes import call_notes
from hooks.flows.find_callable_hook import CallableHook
from hooks.flows.senders import store_greeted_secret
from hooks.flows.stored_notes import HandshakeNote, UsedCredential
from hooks.metrics import HANDSHAKES
from hooks.models import Idempotency
from hooks.rule_values import ALL_METHODS, DEFAULT_METHODS
from hooks.rules import CallRules
from hooks.senders import (
    Call,
    Greeting,
    Refusal,
    RefusalReason,
    Strength,
    Verified,
    examine,
)
from scripts_engine.runs.spec import Event

# A browser that follows a link to a hook sends this origin's cookies, including sessions.
_NEVER_SHOWN = frozenset({"cookie"})
_NO_HEADERS: frozenset[str] = frozenset()
_REASONS_OF_HANDSHAKES = (RefusalReason.HANDSHAKE_REFUSED, RefusalReason.NO_SECRET_SET)


class IncomingCall(Protocol):
    """A call of which nothing is read before it is asked for. Texts are Latin-1, as received."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def subpath(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def client_address(self) -> str: ...
    @property
    def origin(self) -> Origin: ...

    def read_body(self, max_bytes: int) -> bytes:
        """Called once. Raises ``BodyTooLarge``."""


class CallRefused(Exception):
    """A call that runs nothing, and why; ``seen`` is the detail for administrators."""

    def __init__(
        self,
        reason: RefusalReason,
        *,
        seen: str = "",
        body: bytes | None = None,
        allowed_methods: Sequence[str] = (),
        max_body_bytes: int = 0,
        retry_after_seconds: int = 0,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.seen = seen
        self.body = body
        """``None`` if it was not read."""
        self.allowed_methods = allowed_methods
        self.max_body_bytes = max_body_bytes
        self.retry_after_seconds = retry_after_seconds


class NetworkRefused(CallRefused):
    """A call from a network that the hook does not allow."""


class SignatureRefused(CallRefused):
    """A call that does not prove its sender."""


class Admitted(NamedTuple):
    event: Event
    secret_id: uuid.UUID | None = None
    """The signing secret that matched."""


class Greeted(NamedTuple):
    """A handshake, which is answered without a run."""

    greeting: Greeting
    body: bytes


class Examined(NamedTuple):
    result: Verified | Greeting | Refusal
    secrets: Sequence[str]
    """The live signing secrets, newest first: neither scripts nor runs may hold them."""
    secret_id: uuid.UUID | None
    """The signing secret that matched."""


# --- Live calls -----------------------------------------------------------------------------------


def accept(
    call: IncomingCall,
    hook: CallableHook,
    *,
    methods: Sequence[str],
    hidden_headers: frozenset[str] = _NO_HEADERS,
) -> Event | Greeting | None:
    """Returns what the script runs for, or the answer to a handshake.

    ``None`` for HEAD, which senders use to test a URL, and which runs nothing. ``methods`` are
    those of the address. Notes which credentials were used. Raises ``CallRefused``.
    """
    rules = hook.rules
    check_network(call, rules)
    if call.method == "HEAD":
        return None
    sender = None if rules is None else rules.sender
    if sender is None:
        admitted = admit(call, rules, methods=methods, hidden_headers=hidden_headers)
    else:
        admitted = _admit_throttled(call, rules, sender, methods, hidden_headers)
    if isinstance(admitted, Greeted):
        return admitted.greeting
    if admitted.secret_id is not None:
        _note_use(call, hook, str(admitted.secret_id))
    if hook.overlapping_digest:
        _note_use(call, hook, hook.overlapping_digest)
    return admitted.event


def check_network(call: IncomingCall, rules: CallRules | None) -> None:
    """Raises ``NetworkRefused``."""
    if rules is not None and not is_within(call.client_address, rules.allowed_networks):
        raise NetworkRefused(RefusalReason.NETWORK_NOT_ALLOWED)


def methods_of(rules: CallRules | None, methods: Sequence[str]) -> list[str]:
    """Those of the address that run the hook's script, and HEAD."""
    of_hook: Sequence[str] = DEFAULT_METHODS if rules is None else rules.methods
    return [each for each in methods if each == "HEAD" or each in of_hook]


def _admit_throttled(
    call: IncomingCall,
    rules: CallRules | None,
    sender: CallSender,
    methods: Sequence[str],
    hidden_headers: frozenset[str],
) -> Admitted | Greeted:
    """Counts calls that do not prove their sender, and refuses them otherwise if too many come."""
    try:
        admitted = admit(call, rules, methods=methods, hidden_headers=hidden_headers)
        if isinstance(admitted, Greeted):
            _greet(call, sender, admitted)
    except SignatureRefused as refused:
        try:
            count_failed_signature(sender, call.client_address)
        except RateLimitedError as error:
            raise CallRefused(
                RefusalReason.RATE_LIMITED,
                seen="more than 60 wrong signatures of this client within a minute",
                body=refused.body,
                retry_after_seconds=error.retry_after_seconds,
            ) from error
        raise
    return admitted


def count_failed_signature(sender: CallSender, client_address: str) -> None:
    """Raises ``RateLimitedError`` if the client has failed too often with these live secrets.

    Only wrong signatures are counted and limited, once they have been verified: clients share
    addresses, and a right signature is never refused because of the others. A count belongs to the
    live secrets, so what failed before one was set or rotated does not count after it.
    """
    state = [str(secret.id) for secret in sender.secrets]
    subject = (str(sender.hook_id), network_of(client_address), *state)
    hit([FAILED_SIGNATURES_OF_CLIENT], "hook-signature", *subject)


def _greet(call: IncomingCall, sender: CallSender, greeted: Greeted) -> None:
    """Stores the signing secret that the handshake brought, if any, and notes the handshake."""
    greeting, secret = greeted.greeting, greeted.greeting.stores_secret
    if secret is not None and not store_greeted_secret(sender.hook_id, secret, origin=call.origin):
        raise SignatureRefused(
            RefusalReason.HANDSHAKE_REFUSED,
            seen="its secret is no longer expected",
            body=greeted.body,
        )
    name, address = sender.rules.preset, call.client_address
    HANDSHAKES.labels(name).inc()
    note = HandshakeNote(sender.hook_id, timezone.now(), name, address, greeting.status)
    call_notes.add_handshake(note)


def _note_use(call: IncomingCall, hook: CallableHook, credential: str) -> None:
    call_notes.add_use(UsedCredential(hook.id, credential), timezone.now(), call.client_address)


# --- Any call -------------------------------------------------------------------------------------


def admit(
    call: IncomingCall,
    rules: CallRules | None,
    *,
    methods: Sequence[str] = ALL_METHODS,
    hidden_headers: frozenset[str] = _NO_HEADERS,
    now: float | None = None,
) -> Admitted | Greeted:
    """Checks methods, size, handshake and signature, as at ``now`` in epoch seconds.

    Raises ``CallRefused``, which is ``SignatureRefused`` for one answer to all its reasons.
    """
    sender, max_body_bytes = None, settings.HOOK_MAX_BODY_BYTES
    if rules is not None:
        sender, max_body_bytes = rules.sender, rules.max_body_bytes
    allowed = methods_of(rules, methods)
    # Handshakes need not be among the methods that run the script.
    is_allowed = call.method in allowed
    if not is_allowed and (sender is None or not sender.greets_by(call.method)):
        raise CallRefused(RefusalReason.METHOD_NOT_ALLOWED, allowed_methods=allowed)
    try:
        body = call.read_body(max_body_bytes)
    except BodyTooLarge:
        raise CallRefused(RefusalReason.BODY_TOO_LARGE, max_body_bytes=max_body_bytes) from None
    if rules is None or sender is None:
        return Admitted(_event_of(call, body, hidden_headers))
    examined = examine_call(call, sender, body, now=time.time() if now is None else now)
    result = examined.result
    if isinstance(result, Greeting):
        return Greeted(result, body)
    is_handshake = isinstance(result, Refusal) and result.reason in _REASONS_OF_HANDSHAKES
    if not is_allowed and not is_handshake:
        raise CallRefused(RefusalReason.METHOD_NOT_ALLOWED, body=body, allowed_methods=allowed)
    if isinstance(result, Refusal):
        raise SignatureRefused(result.reason, seen=result.detail, body=body)
    proof = _proof_of(call, rules, sender, examined, result)
    event = _event_of(call, body, hidden_headers, examined.secrets, **proof)
    return Admitted(event, examined.secret_id)


def examine_call(call: IncomingCall, sender: CallSender, body: bytes, *, now: float) -> Examined:
    """Verifies that the call comes from the sender, or answers its handshake."""
    live = sender.open_secrets()
    secrets = [secret for _, secret in live]
    result = examine(sender.rules_with_token(), secrets, signed_call(call, sender, body), now=now)
    matched = result.matched_secret if isinstance(result, Verified) else None
    return Examined(result, secrets, None if matched is None else live[matched][0])


def signed_call(call: IncomingCall, sender: CallSender, body: bytes) -> Call:
    """The call as its sender signs it."""
    return Call(call.method, sender.signed_url or call.url, call.query, call.headers, body)


def _event_of(
    call: IncomingCall,
    body: bytes,
    hidden_headers: frozenset[str],
    secrets: Sequence[str] = (),
    **proof: Any,
) -> Event:
    """The call with its body unchanged, and what it proves of its sender.

    The script does not see ``hidden_headers`` (lower case), cookies, or headers that contain a
    secret issued by Moonhook, or that are a secret of the sender.
    """
    hidden = hidden_headers | _NEVER_SHOWN
    headers = tuple(
        (name, value)
        for name, value in call.headers
        if name.lower() not in hidden and not holds_secret(value) and value not in secrets
    )
    method, query, address = call.method, call.query, call.client_address
    proof.setdefault("content", (method, call.path, query, body))
    return Event(method, query, headers, body, address, call.subpath, **proof)


def _proof_of(
    call: IncomingCall, rules: CallRules, sender: CallSender, examined: Examined, result: Verified
) -> dict[str, Any]:
    event_id, signed = result.event_id, result.signed_content
    if event_id is None and rules.idempotency == Idempotency.EVENT_ID:
        event_id = ""
    proof: dict[str, Any] = {
        "sender": sender.rules.preset,
        "verified": result.strength,
        "event_id": event_id,
    }
    if signed is not None:
        proof["content"] = (call.method, signed)
    if result.strength == Strength.SHARED_SECRET:
        proof["shared_secrets"] = tuple(examined.secrets)
    return proof
