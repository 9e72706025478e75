"""Examines a call: does it come from the sender that the hook names?"""

from collections.abc import Sequence
from typing import Any

from scripts_engine.senders.contract import (
    Call,
    Greeting,
    HmacOptions,
    InvalidSecretError,
    RefusalError,
    RefusalReason,
    Refused,
    Rules,
    Verified,
)
from scripts_engine.senders.evidence import Evidence, malformed, read_evidence
from scripts_engine.senders.handshakes import (
    SIGNED_HANDSHAKES,
    greet_signed,
    greet_unsigned,
)
from scripts_engine.senders.json_body import InvalidJSONError, at_pointer, id_at, parse_json
from scripts_engine.senders.matching import matching_secret
from scripts_engine.senders.preset import (
    Preset,
    Scheme,
    TimestampUnit,
    preset_with,
)
from scripts_engine.senders.secrets import normalised_secret
from scripts_engine.senders.special_schemes import (
    mailgun_evidence,
    secret_of_every_notification,
    twilio_evidence,
)

_SPECIAL = {Scheme.TWILIO: twilio_evidence, Scheme.MAILGUN: mailgun_evidence}


def examine(
    rules: Rules, secrets: Sequence[str], call: Call, *, now: float
) -> Verified | Greeting | Refused:
    """Verifies a call, or answers a handshake. Never raises, whatever the call contains.

    ``secrets`` are the live ones as ``check_secret`` returned them, the newest first. ``now`` is in
    seconds since the epoch. Nothing of the call is parsed before its signature holds, except where
    the sender keeps the signature in the body.
    """
    preset = preset_with(rules.preset, rules.hmac)
    if preset is None:
        return Refused(RefusalReason.NO_SECRET_SET, "the hook's sender is not set up")
    return examine_as(preset, rules, secrets, call, now=now)


def examine_as(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call, *, now: float
) -> Verified | Greeting | Refused:
    """Examines a call as one of this sender, whatever sender the rules name."""
    try:
        return _examine(preset, rules, secrets, call, now)
    except RefusalError as error:
        return error.refused


def check_secret(preset: str, hmac: HmacOptions | None, value: str) -> str:
    """Returns the signing secret to store: the value without surrounding white space.

    Raises ``InvalidSecretError`` for a value that cannot be a secret of this sender; its text never
    contains the value.
    """
    known = preset_with(preset, hmac)
    if known is None:
        raise InvalidSecretError("Set the sender first.")
    return normalised_secret(known.secret, value)


def _examine(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call, now: float
) -> Verified | Greeting:
    if greeting := greet_unsigned(preset, rules, secrets, call):
        return greeting
    if not preset.takes_secret:
        return Verified(None, None, preset.strength)
    if not secrets:
        raise RefusalError(RefusalReason.NO_SECRET_SET, "no signing secret is set")
    if preset.scheme is Scheme.CLIENT_STATE:
        matched = _required(secret_of_every_notification(call, secrets))
        return Verified(None, matched, preset.strength)
    evidence = _SPECIAL.get(preset.scheme, read_evidence)(preset, call)
    matched = _required(matching_secret(evidence, preset.secret, secrets))
    body = _SignedBody(call.body)
    _check_time(preset, rules, evidence, body, now)
    if preset.handshake in SIGNED_HANDSHAKES and (
        greeting := greet_signed(preset, secrets, call, body.document)
    ):
        return greeting
    if preset.is_body_object and not isinstance(body.document, dict):
        raise RefusalError(RefusalReason.SIGNATURE_MISMATCH, "the body is not a JSON object")
    return Verified(
        _event_id(preset, rules, evidence, body),
        matched,
        preset.strength,
        evidence.materials[0] if preset.scheme is Scheme.TWILIO else None,
    )


class _SignedBody:
    """A body whose signature holds, parsed when something asks for a field of it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._parsed: list[Any] = []

    @property
    def document(self) -> Any:
        """The parsed JSON; None if the body is not JSON."""
        if not self._parsed:
            try:
                self._parsed.append(parse_json(self._content))
            except InvalidJSONError:
                self._parsed.append(None)
        return self._parsed[0]


def _required(matched: int | None) -> int:
    if matched is None:
        raise RefusalError(
            RefusalReason.SIGNATURE_MISMATCH, "no live secret makes a signature of the call"
        )
    return matched


def _check_time(
    preset: Preset, rules: Rules, evidence: Evidence, body: _SignedBody, now: float
) -> None:
    """Refuses a signed time that is further from now than the tolerance, in either direction."""
    if not preset.has_timestamp or preset.tolerance_seconds is None:
        return
    signed_at = evidence.timestamp
    if preset.timestamp_pointer:
        signed_at = _time_in_body(preset, body)
    if signed_at is None:
        raise malformed("the signed time is missing")
    tolerance = rules.tolerance_seconds or preset.tolerance_seconds
    age = now - signed_at
    if age > tolerance:
        raise RefusalError(RefusalReason.TIMESTAMP_TOO_OLD, f"{age:.0f} s old")
    if age < -tolerance:
        raise RefusalError(RefusalReason.TIMESTAMP_TOO_NEW, f"{-age:.0f} s in the future")


def _time_in_body(preset: Preset, body: _SignedBody) -> float | None:
    value = at_pointer(body.document, preset.timestamp_pointer)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 10**15:
        raise malformed("the time in the body is not a number")
    return value / (1000 if preset.timestamp_unit is TimestampUnit.MILLISECONDS else 1)


def _event_id(preset: Preset, rules: Rules, evidence: Evidence, body: _SignedBody) -> str | None:
    """The id of the event, from signed material alone; the hook's own pointers come first."""
    if rules.event_id_pointers and preset.takes_pointers:
        return id_at(body.document, rules.event_id_pointers)
    if evidence.event_id is not None:
        return evidence.event_id
    return id_at(body.document, preset.event_id_pointers) if preset.event_id_pointers else None
