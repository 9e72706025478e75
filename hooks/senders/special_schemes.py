"""The proofs that the table of senders cannot describe: Twilio, Mailgun, Microsoft Graph."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from hooks.senders.contract import Call, RefusalError, RefusalReason
from hooks.senders.evidence import (
    Evidence,
    Headers,
    Kind,
    Presented,
    is_well_formed,
    malformed,
    missing,
    parse_timestamp,
    query_of_signed_url,
)
from hooks.senders.json_body import InvalidJSONError, parse_json
from hooks.senders.preset import Algorithm, Encoding, Preset

# Twilio, Mailgun and Graph stay far below; more would cost time before the proof holds.
MAX_FORM_FIELDS = 1_000
MAX_NOTIFICATIONS = 1_000
_FORM = "application/x-www-form-urlencoded"
_DEFAULT_PORTS = {"https": 443, "http": 80}
_TWILIO_ALGORITHMS = {"HMAC_SHA256": Algorithm.SHA256, "HMAC_SHA1": Algorithm.SHA1}
_TOKEN = re.compile(r"[0-9A-Za-z_-]{1,200}")
# What Twilio signs instead of a form.
_HASH_AT_END = re.compile(rb"[?&]bodySHA256=[0-9A-Fa-f]{64}\Z")


def twilio_evidence(preset: Preset, call: Call) -> Evidence:
    """Twilio signs the URL, and the fields of a form or, in ``bodySHA256``, the body's hash.

    With a SharedKey the algorithm is SHA-256, which a header of its own says. The URL counts both
    with and without its port.
    """
    headers = Headers(call.headers)
    name = preset.headers[0].signature
    value = headers.required(name)
    if not is_well_formed(value, preset.encoding):
        raise malformed(f"{name} is not base64")
    algorithm = _twilio_algorithm(headers) or preset.algorithm
    fields = _form_fields(call.body) if _media_type(headers) == _FORM else []
    query = query_of_signed_url(call.url)
    # Each distinct pair, by name and then by value, without separators.
    suffix = b"".join(name + value for name, value in sorted(set(fields)))
    if not suffix:
        _check_body_hash(call, query)
    elif _HASH_AT_END.search(query.encode("utf-8", "surrogatepass") + suffix):
        raise malformed("the form could be the end of a URL with bodySHA256")
    materials = dict.fromkeys(
        url.encode("utf-8", "surrogatepass") + suffix
        for url in urls_with_and_without_port(call.url)
    )
    return Evidence((Presented(Kind.HMAC, value, preset.encoding),), tuple(materials), algorithm)


def mailgun_evidence(preset: Preset, call: Call) -> Evidence:
    """Mailgun signs a time and a token, which are fields of the JSON or form body."""
    timestamp, token, signature = _mailgun_fields(call)
    if not all(isinstance(each, str) and each for each in (timestamp, token, signature)):
        raise missing("signature, timestamp or token is missing in the body")
    if not is_well_formed(signature, Encoding.HEX):
        raise malformed("the signature is not hex")
    if not _TOKEN.fullmatch(token):
        raise malformed("the token is not alphanumeric")
    seconds = parse_timestamp(timestamp, preset.timestamp_unit)
    return Evidence(
        (Presented(Kind.HMAC, signature, Encoding.HEX),),
        (timestamp.encode() + token.encode(),),
        preset.algorithm,
        seconds,
        token,
    )


def secret_of_every_notification(call: Call, secrets: Sequence[str]) -> int | None:
    """Compares the ``clientState`` of each of Graph's notifications with the secrets.

    Returns the index of the secret of the first one; None unless every notification has one.
    """
    document = _body_object(call)
    notifications = document.get("value")
    if not isinstance(notifications, list) or not notifications:
        raise missing("the body has no notification")
    if len(notifications) > MAX_NOTIFICATIONS:
        raise malformed(f"the body has more than {MAX_NOTIFICATIONS:,} notifications")
    states = [each.get("clientState") if isinstance(each, dict) else None for each in notifications]
    if any(state is None for state in states):
        raise missing("a notification has no clientState")
    matches = [_secrets_equal_to(state, secrets) for state in states]
    if not all(any(each) for each in matches):
        return None
    return matches[0].index(True)


def urls_with_and_without_port(url: str) -> tuple[str, ...]:
    """The URL as given, without its port, and with its scheme's default port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return (url,)
    default = _DEFAULT_PORTS.get(parts.scheme)
    if port is not None:
        bare = parts.netloc.removesuffix(f":{port}")
        return (url, url.replace(parts.netloc, bare, 1))
    if default is None or not parts.netloc or parts.netloc.endswith(":"):
        return (url,)
    return (url, url.replace(parts.netloc, f"{parts.netloc}:{default}", 1))


def _twilio_algorithm(headers: Headers) -> Algorithm | None:
    settings = headers.one("X-Twilio-Webhooks-Signature-Settings")
    if settings is None:
        return None
    pairs = [item.strip().partition("=") for item in settings.split(",")]
    names = {value.strip().upper() for key, _, value in pairs if key == "algorithm"}
    if not names <= _TWILIO_ALGORITHMS.keys() or len(names) > 1:
        raise malformed("X-Twilio-Webhooks-Signature-Settings names no known algorithm")
    return _TWILIO_ALGORITHMS[names.pop()] if names else None


def _check_body_hash(call: Call, query: str) -> None:
    """Refuses a body that the signature does not cover.

    Twilio appends the hash to the URL. One in the middle may be the text of a message, out of a
    form that is sent again as the query.
    """
    pairs = _pairs(query.removeprefix("?"))
    hashes = [value for name, value in pairs if name == b"bodySHA256"]
    if not hashes and not call.body:
        return
    if len(hashes) > 1:
        raise malformed("bodySHA256 occurs twice in the URL")
    if hashes and pairs[-1][0] != b"bodySHA256":
        raise malformed("bodySHA256 is not the end of the URL")
    given = hashes[0].lower() if hashes else b""
    # Not secret: both are in the call. The signature covers the hash.
    if given != hashlib.sha256(call.body).hexdigest().encode():
        raise RefusalError(
            RefusalReason.SIGNATURE_MISMATCH,
            "bodySHA256 is not the hash of the body"
            if hashes
            else "the signature does not cover the body: it is not a form and has no bodySHA256",
        )


def _form_fields(body: bytes) -> list[tuple[bytes, bytes]]:
    if body.count(b"&") >= MAX_FORM_FIELDS:
        raise malformed(f"the form has more than {MAX_FORM_FIELDS:,} fields")
    return _pairs(body.decode("latin-1"))


def _pairs(encoded: str) -> list[tuple[bytes, bytes]]:
    """Decoded names and values; also blank values, as they are signed."""
    if encoded.count("&") >= MAX_FORM_FIELDS:
        raise malformed("the query has too many fields")
    split = [item.partition("=") for item in encoded.split("&") if item]
    return [(_unquoted(name), _unquoted(value)) for name, _, value in split]


def _unquoted(text: str) -> bytes:
    return unquote_to_bytes(text.replace("+", " ").encode("latin-1", "replace"))


def _media_type(headers: Headers) -> str:
    return (headers.one("Content-Type") or "").partition(";")[0].strip().lower()


def _mailgun_fields(call: Call) -> tuple[Any, Any, Any]:
    if _media_type(Headers(call.headers)) == _FORM:
        fields = dict.fromkeys(("timestamp", "token", "signature"), "")
        for name, value in _form_fields(call.body):
            key = name.decode("latin-1")
            if fields.get(key):
                raise malformed(f"{key} occurs twice in the form")
            if key in fields:
                fields[key] = value.decode("latin-1")
        return fields["timestamp"], fields["token"], fields["signature"]
    proof = _body_object(call).get("signature")
    if not isinstance(proof, dict):
        raise missing("the body has no signature")
    timestamp = proof.get("timestamp")
    if isinstance(timestamp, int) and not isinstance(timestamp, bool) and 0 <= timestamp < 10**15:
        timestamp = str(timestamp)
    return timestamp, proof.get("token"), proof.get("signature")


def _body_object(call: Call) -> dict[str, Any]:
    if not call.body:
        raise missing("the body is empty")
    try:
        document = parse_json(call.body)
    except InvalidJSONError as error:
        raise malformed(f"the body is {error}") from None
    if not isinstance(document, dict):
        raise missing("the body is not a JSON object")
    return document


def _secrets_equal_to(state: Any, secrets: Sequence[str]) -> list[bool]:
    if not isinstance(state, str):
        raise malformed("a clientState is not text")
    given = state.encode("utf-8", "surrogatepass")
    return [hmac.compare_digest(given, secret.encode("utf-8", "replace")) for secret in secrets]
