"""Test events: a call as a sender makes it, signed as the sender signs."""

import hmac
import secrets as random
import tomllib
import uuid
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding as KeyEncoding
from cryptography.hazmat.primitives.serialization import PublicFormat

from hooks.senders.contract import Call, InvalidSecretError, Rules
from hooks.senders.evidence import decoded_by_hubspot, signed_material
from hooks.senders.preset import (
    Encoding,
    Layout,
    Preset,
    Scheme,
    SignatureHeaders,
    TimestampUnit,
    preset_with,
)
from hooks.senders.secrets import Key, SecretFormat, open_key

_SAMPLES = Path(__file__).with_name("samples.toml")
_JSON = "application/json"
# For a hook without a sender.
_OF_NOBODY = '{"id":"%id%","type":"test","createdAt":"%time%"}'
_ID_BYTES = 12
_SECRET_BYTES = 32


class SampleEvent(NamedTuple):
    """A call, and the secret or public key that verifies it and no other call."""

    call: Call
    secret: str | None


@dataclass(frozen=True, slots=True)
class _Signer:
    """What makes signatures: at most one of its parts is set."""

    shared: bytes | None = None
    ed25519: Ed25519PrivateKey | None = None
    p256: EllipticCurvePrivateKey | None = None


def sample_event(rules: Rules | None, secret: str | None, url: str, *, now: float) -> SampleEvent:
    """An event as the sender sends it to ``url``, at ``now`` in seconds since the epoch.

    ``rules`` None: the hook has no sender. ``secret``: the live signing secret, which shows the
    kind of key and signs nothing: what it signed could be read in the run, and sent as a call.
    The key that signs is thrown away. Raises ``InvalidSecretError`` if a secret is missing.
    """
    preset = None if rules is None else preset_with(rules.preset, rules.hmac)
    sample: Mapping[str, Any] = {} if preset is None else samples()[preset.name]
    signer, verifying = _Signer(), None
    if preset is not None and preset.takes_secret:
        signer, verifying = _signer(preset, secret)
    fill = _filler(now, verifying)
    headers = {"Content-Type": sample.get("content_type", _JSON), "User-Agent": "Moonhook-Test"}
    headers |= {name: fill(value) for name, value in sample.get("headers", {}).items()}
    body = fill(sample.get("body", _OF_NOBODY)).encode()
    if preset is None or verifying is None:
        return SampleEvent(_call(url, headers, body), None)
    body = _with_proof(preset, signer, body, now)
    headers |= _signature_headers(preset, signer, url, body, now)
    return SampleEvent(_call(url, headers, body), verifying)


@cache
def samples() -> Mapping[str, Mapping[str, Any]]:
    """Body, headers and content type of each sender's event, by the sender's name."""
    return tomllib.loads(_SAMPLES.read_text(encoding="utf-8"))


def _call(url: str, headers: Mapping[str, str], body: bytes) -> Call:
    return Call("POST", url, url.partition("?")[2], tuple(headers.items()), body)


def _filler(now: float, secret: str | None) -> Any:
    values = {
        "%id%": random.token_hex(_ID_BYTES),
        "%uuid%": str(uuid.uuid4()),
        "%seconds%": str(int(now)),
        "%milliseconds%": str(int(now * 1000)),
        "%time%": _iso(now),
        "%secret%": secret or "",
    }

    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    return fill


def _iso(now: float) -> str:
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _signer(preset: Preset, secret: str | None) -> tuple[_Signer, str]:
    """What signs, and the secret that verifies it."""
    key = None if secret is None else open_key(preset.secret, secret)
    if preset.scheme is Scheme.ECDSA:
        p256 = generate_private_key(SECP256R1())
        spki = p256.public_key().public_bytes(KeyEncoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _Signer(p256=p256), b64encode(spki).decode()
    if preset.scheme is Scheme.ED25519 or _is_public(key):
        ed25519 = Ed25519PrivateKey.generate()
        raw = ed25519.public_key().public_bytes(KeyEncoding.Raw, PublicFormat.Raw)
        is_hex = preset.secret is SecretFormat.ED25519_HEX
        return _Signer(ed25519=ed25519), raw.hex() if is_hex else f"whpk_{b64encode(raw).decode()}"
    if secret is None or key is None or key.shared is None:
        raise InvalidSecretError("Set the signing secret first.")
    # Of every format for shared secrets: text, hexadecimal digits, and base64 of 48 bytes.
    made = random.token_hex(_SECRET_BYTES)
    return _Signer(shared=open_key(preset.secret, made).shared), made


def _is_public(key: Key | None) -> bool:
    return key is not None and key.ed25519 is not None


def _with_proof(preset: Preset, signer: _Signer, body: bytes, now: float) -> bytes:
    """The body of a sender whose proof is a part of it."""
    if preset.scheme is not Scheme.MAILGUN or signer.shared is None:
        return body
    timestamp, token = str(int(now)), random.token_hex(25)
    made = hmac.digest(signer.shared, f"{timestamp}{token}".encode(), preset.algorithm).hex()
    proof = f'{{"signature":{{"timestamp":"{timestamp}","token":"{token}","signature":"{made}"}},'
    return proof.encode() + body.removeprefix(b"{")


def _signature_headers(
    preset: Preset, signer: _Signer, url: str, body: bytes, now: float
) -> dict[str, str]:
    if not preset.headers:
        return {}
    names = preset.headers[0]
    if preset.scheme is Scheme.TOKEN:
        return {names.signature: (signer.shared or b"").decode()}
    timestamp, event_id = _timestamp(preset, now), f"msg_{random.token_hex(_ID_BYTES)}"
    if preset.scheme is Scheme.TWILIO:
        material = url.encode() + _form(body)
    else:
        signed_url = decoded_by_hubspot(url) if preset.has_decoded_url else url
        call = _call(url, {}, body)
        material = signed_material(preset.template, call, timestamp, event_id, signed_url)
    made = _signature(preset, signer, material)
    headers = {_name_of(preset, names): _laid_out(preset, signer, made, timestamp)}
    if names.timestamp:
        headers[names.timestamp] = timestamp
    if names.id:
        headers[names.id] = event_id
    return headers


def _name_of(preset: Preset, names: SignatureHeaders) -> str:
    return f"{names.signature}-1" if preset.scheme is Scheme.NUMBERED else names.signature


def _timestamp(preset: Preset, now: float) -> str:
    match preset.timestamp_unit:
        case TimestampUnit.MILLISECONDS:
            return str(int(now * 1000))
        case TimestampUnit.ISO_8601:
            return _iso(now)
    return str(int(now))


def _form(body: bytes) -> bytes:
    pairs = parse_qsl(body.decode(), keep_blank_values=True)
    return "".join(name + value for name, value in sorted(set(pairs))).encode()


def _signature(preset: Preset, signer: _Signer, material: bytes) -> str:
    if signer.ed25519 is not None:
        made = signer.ed25519.sign(material)
    elif signer.p256 is not None:
        made = signer.p256.sign(material, ECDSA(SHA256()))
    else:
        made = hmac.digest(signer.shared or b"", material, preset.algorithm)
    return made.hex() if preset.encoding is Encoding.HEX else b64encode(made).decode()


def _laid_out(preset: Preset, signer: _Signer, made: str, timestamp: str) -> str:
    if preset.scheme is Scheme.STANDARD:
        return f"{'v1' if signer.ed25519 is None else 'v1a'},{made}"
    if preset.layout is Layout.FIELDS:
        key, sign = preset.timestamp_key, preset.signature_key
        return f"{key}={timestamp}{preset.separator}{sign}={preset.prefix}{made}"
    return preset.prefix + made
