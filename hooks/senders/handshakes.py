"""Handshakes: what senders ask before they call, and the platform's answers to it."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest, digest
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from hooks.senders.contract import (
    MAX_ECHO_BYTES,
    MAX_SECRET_CHARS,
    Call,
    Greeting,
    RefusalError,
    RefusalReason,
    Rules,
)
from hooks.senders.preset import Handshake, Preset

# Their requests are signed like calls.
SIGNED_HANDSHAKES = frozenset(
    {Handshake.SLACK, Handshake.ZOOM, Handshake.DISCORD, Handshake.ASANA, Handshake.XERO}
)

_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
_JSON = (("Content-Type", "application/json"),)
_MAX_QUERY_FIELDS = 100


def greet_unsigned(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call
) -> Greeting | None:
    """Answers a handshake that carries no signature; None for any other call.

    Raises ``RefusalError`` for a handshake that may not be answered.
    """
    greet = _UNSIGNED.get((preset.handshake, call.method))
    return greet(rules, secrets, call) if greet else None


def greet_signed(
    preset: Preset, secrets: Sequence[str], call: Call, document: Any
) -> Greeting | None:
    """Answers a handshake whose signature holds; None for any other call.

    ``document`` is the parsed body. Raises ``RefusalError`` for an echo that may not be sent.
    """
    if call.method != "POST" or not isinstance(document, dict):
        return None
    match preset.handshake:
        case Handshake.SLACK if document.get("type") == "url_verification":
            return Greeting(200, _TEXT, _echo(document.get("challenge")))
        case Handshake.ZOOM if document.get("event") == "endpoint.url_validation":
            return _greet_zoom(secrets, document)
        case Handshake.DISCORD:
            return _greet_discord(document)
        case Handshake.ASANA | Handshake.XERO if document.get("events") == []:
            return Greeting(200, (), b"")
    return None


def _greet_meta(rules: Rules, secrets: Sequence[str], call: Call) -> Greeting | None:
    fields = _query_fields(call)
    if not fields.keys() & {"hub.mode", "hub.challenge", "hub.verify_token"}:
        return None
    if _only(fields, "hub.mode") != b"subscribe":
        _refuse("hub.mode is not subscribe")
    expected = rules.verify_token
    given = _only(fields, "hub.verify_token")
    if not expected or not compare_digest(given, expected.encode("utf-8", "replace")):
        _refuse("hub.verify_token is not the hook's verify token")
    return Greeting(200, _TEXT, _echo(_only(fields, "hub.challenge")))


def _greet_microsoft_graph(rules: Rules, secrets: Sequence[str], call: Call) -> Greeting | None:
    return _echo_of_query(call, "validationToken")


def _greet_dropbox(rules: Rules, secrets: Sequence[str], call: Call) -> Greeting | None:
    return _echo_of_query(call, "challenge")


def _echo_of_query(call: Call, name: str) -> Greeting | None:
    fields = _query_fields(call)
    return Greeting(200, _TEXT, _echo(_only(fields, name))) if name in fields else None


def _greet_x(rules: Rules, secrets: Sequence[str], call: Call) -> Greeting | None:
    fields = _query_fields(call)
    if "crc_token" not in fields:
        return None
    token = _echo(_only(fields, "crc_token"))
    # The answer is a signature that would also fit a call with the token as its body. Bodies are
    # JSON objects, so nobody can have one signed.
    if b"{" in token:
        _refuse("crc_token could be the body of a call")
    if not secrets:
        raise RefusalError(RefusalReason.NO_SECRET_SET, "crc_token cannot be answered")
    made = b64encode(digest(secrets[0].encode("utf-8", "replace"), token, "sha256")).decode()
    return Greeting(200, _JSON, _json_of({"response_token": f"sha256={made}"}))


def _greet_asana(rules: Rules, secrets: Sequence[str], call: Call) -> Greeting | None:
    value = _header(call, "x-hook-secret")
    if value is None:
        return None
    if secrets:
        _refuse("a signing secret is set, and a handshake never replaces one")
    if not rules.is_handshake_expected:
        _refuse("no handshake is expected")
    secret = _echo(value.encode("utf-8", "surrogatepass")).decode()
    if secret != secret.strip() or len(secret) > MAX_SECRET_CHARS or "," in secret:
        _refuse("X-Hook-Secret cannot be a signing secret")
    return Greeting(204, (("X-Hook-Secret", secret),), b"", stores_secret=secret)


def _greet_cloudevents(rules: Rules, secrets: Sequence[str], call: Call) -> Greeting:
    origin = _header(call, "webhook-request-origin")
    if origin is None:
        raise RefusalError(
            RefusalReason.METHOD_NOT_ALLOWED, "OPTIONS without WebHook-Request-Origin"
        )
    echoed = _echo(origin.encode("utf-8", "surrogatepass")).decode()
    if "," in echoed:
        _refuse("WebHook-Request-Origin occurs twice")
    rate = "*" if rules.allowed_rate is None else str(rules.allowed_rate)
    answer = (
        ("WebHook-Allowed-Origin", echoed),
        ("WebHook-Allowed-Rate", rate),
        ("Allow", "POST"),
    )
    return Greeting(200, answer, b"")


def _greet_zoom(secrets: Sequence[str], document: dict[str, Any]) -> Greeting:
    payload = document.get("payload")
    token = _echo(payload.get("plainToken") if isinstance(payload, dict) else None)
    encrypted = digest(secrets[0].encode("utf-8", "replace"), token, "sha256").hex()
    return Greeting(
        200, _JSON, _json_of({"plainToken": token.decode(), "encryptedToken": encrypted})
    )


def _greet_discord(document: dict[str, Any]) -> Greeting | None:
    kind = document.get("type")
    # True == 1 in Python, but is not a type of Discord's.
    if isinstance(kind, bool) or "event" in document:
        return None
    if kind == 0:
        return Greeting(204, (), b"")
    if kind == 1 and "token" in document:
        return Greeting(200, _JSON, _json_of({"type": 1}))
    return None


_UNSIGNED: Mapping[
    tuple[Handshake, str], Callable[[Rules, Sequence[str], Call], Greeting | None]
] = {
    (Handshake.META, "GET"): _greet_meta,
    (Handshake.MICROSOFT_GRAPH, "POST"): _greet_microsoft_graph,
    (Handshake.DROPBOX, "GET"): _greet_dropbox,
    (Handshake.X, "GET"): _greet_x,
    (Handshake.ASANA, "POST"): _greet_asana,
    (Handshake.CLOUDEVENTS, "OPTIONS"): _greet_cloudevents,
}


def _query_fields(call: Call) -> dict[str, list[bytes]]:
    """Names and values of the query, decoded once."""
    fields: dict[str, list[bytes]] = {}
    for item in call.query.split("&", _MAX_QUERY_FIELDS)[:_MAX_QUERY_FIELDS]:
        name, _, value = item.partition("=")
        key = _unquoted(name).decode("latin-1")
        fields.setdefault(key, []).append(_unquoted(value))
    return fields


def _unquoted(text: str) -> bytes:
    return unquote_to_bytes(text.replace("+", " ").encode("utf-8", "surrogatepass"))


def _only(fields: dict[str, list[bytes]], name: str) -> bytes:
    values = fields.get(name, [])
    if len(values) != 1:
        _refuse(f"{name} occurs {len(values)} times")
    return values[0]


def _header(call: Call, name: str) -> str | None:
    values = [value for each, value in call.headers if each.lower() == name]
    if len(values) > 1:
        _refuse(f"{name} occurs {len(values)} times")
    return values[0] if values else None


def _echo(value: object) -> bytes:
    """The value as it may be sent back: 1 to 4,096 bytes of printable ASCII."""
    content = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    if not isinstance(content, bytes) or not content:
        _refuse("the challenge is missing")
    if len(content) > MAX_ECHO_BYTES:
        _refuse(f"the challenge is longer than {MAX_ECHO_BYTES:,} bytes")
    if not all(0x20 <= byte <= 0x7E for byte in content):
        _refuse("the challenge is not printable ASCII")
    return content


def _json_of(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _refuse(detail: str) -> NoReturn:
    raise RefusalError(RefusalReason.HANDSHAKE_REFUSED, detail)
