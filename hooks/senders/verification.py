"""Examines a call: does it come from the sender that the hook names?"""

import hmac
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from hooks.senders.contract import (
    Call,
    Greeting,
    HmacOptions,
    InvalidSecretError,
    Refusal,
    RefusalError,
    RefusalReason,
    Rules,
    Verified,
)
from hooks.senders.evidence import Evidence, Kind, Presented, malformed, read_evidence
from hooks.senders.handshakes import (
    SIGNED_HANDSHAKES,
    greet_signed,
    greet_unsigned,
)
from hooks.senders.json_body import InvalidJSONError, at_pointer, id_at, parse_json
from hooks.senders.preset import (
    Algorithm,
    Encoding,
    Preset,
    Scheme,
    TimestampUnit,
    preset_with,
)
from hooks.senders.secrets import (
    Key,
    SecretFormat,
    decoded_base64,
    decoded_hex,
    normalised_secret,
    open_key,
)
from hooks.senders.special_schemes import (
    mailgun_evidence,
    secret_of_every_notification,
    twilio_evidence,
)

_SPECIAL = {Scheme.TWILIO: twilio_evidence, Scheme.MAILGUN: mailgun_evidence}


def examine(
    rules: Rules, secrets: Sequence[str], call: Call, *, now: float
) -> Verified | Greeting | Refusal:
    """Verifies a call, or answers a handshake. Never raises, whatever the call contains.

    ``secrets`` are the live ones as ``check_secret`` returned them, the newest first. ``now`` is in
    seconds since the epoch. Nothing of the call is parsed before its signature holds, except where
    the sender keeps the signature in the body.
    """
    preset = preset_with(rules.preset, rules.hmac)
    if preset is None:
        return Refusal(RefusalReason.NO_SECRET_SET, "the hook's sender is not set up")
    return examine_as(preset, rules, secrets, call, now=now)


def examine_as(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call, *, now: float
) -> Verified | Greeting | Refusal:
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


# --- Comparing signatures -------------------------------------------------------------------------


def matching_secret(
    evidence: Evidence, format_: SecretFormat, secrets: Sequence[str]
) -> int | None:
    """The index of the first secret that made one of the signatures; None if none did.

    Every signature is compared with every secret, over bytes and in constant time, so that the time
    taken does not tell which of them matched.
    """
    _check_commas(evidence, secrets)
    matches = [_made(evidence, key) for key in _keys(format_, secrets)]
    return matches.index(True) if True in matches else None


def _check_commas(evidence: Evidence, secrets: Sequence[str]) -> None:
    """Refuses a token with a comma, with which servers join repeated headers."""
    is_joined = any(
        presented.kind is Kind.TOKEN and "," in presented.value for presented in evidence.signatures
    )
    if is_joined and not any("," in secret for secret in secrets):
        raise malformed("the header has a comma, or occurs twice")


def _made(evidence: Evidence, key: Key | None) -> bool:
    if key is None:
        return False
    is_match = False
    for material in evidence.materials:
        expected = _Expected(key, material, evidence.algorithm)
        for presented in evidence.signatures:
            is_match |= expected.fits(presented)
    return is_match


class _Expected:
    """What one key makes of one material."""

    def __init__(self, key: Key, material: bytes, algorithm: Algorithm) -> None:
        self._key = key
        self._material = material
        self._digest = (
            hmac.digest(key.shared, material, algorithm) if key.shared is not None else None
        )

    def fits(self, presented: Presented) -> bool:
        match presented.kind:
            case Kind.HMAC:
                return self._is_digest(presented)
            case Kind.TOKEN:
                shared = self._key.shared
                given = presented.value.encode("utf-8", "surrogatepass")
                return shared is not None and hmac.compare_digest(given, shared)
            case Kind.ED25519:
                signature = _decoded(presented)
                return self._key.is_ed25519_signature(signature, self._material)
            case Kind.ECDSA:
                return self._key.is_ecdsa_signature(_decoded(presented), self._material)

    def _is_digest(self, presented: Presented) -> bool:
        if self._digest is None:
            return False
        if presented.encoding is Encoding.HEX:
            expected, given = self._digest.hex(), presented.value.lower()
        else:
            expected, given = b64encode(self._digest).decode(), presented.value
        # As bytes: compare_digest raises TypeError for text that is not ASCII.
        return hmac.compare_digest(expected.encode(), given.encode())


def _keys(format_: SecretFormat, secrets: Sequence[str]) -> Iterator[Key | None]:
    for secret in secrets:
        try:
            yield open_key(format_, secret)
        except InvalidSecretError:
            # Stored for another sender of the same hook: it matches nothing.
            yield None


def _decoded(presented: Presented) -> bytes:
    """The signature's bytes; empty, which fits nothing, for an impossible length."""
    decode = decoded_hex if presented.encoding is Encoding.HEX else decoded_base64
    try:
        return decode(presented.value)
    except ValueError:
        return b""
