"""What a call presents as proof: its signatures, and the bytes that they were made over."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from hooks.senders.contract import (
    MAX_EVENT_ID_CHARS,
    MAX_SIGNATURES,
    PLACEHOLDER,
    Call,
    RefusalError,
    RefusalReason,
    boundaries_of,
)
from hooks.senders.preset import (
    MAX_NUMBERED_HEADERS,
    Algorithm,
    Encoding,
    Layout,
    Preset,
    Scheme,
    SignatureHeaders,
    TimestampUnit,
)

# 32 digits: more than any clock writes, few enough for float(). A leading zero could be a byte of
# the body, where the time follows it without a separator.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,31}")
_ISO_8601 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_ALPHABETS = {
    Encoding.HEX: re.compile(r"[0-9A-Fa-f]+"),
    Encoding.BASE64: re.compile(r"[A-Za-z0-9+/]+={0,2}"),
}
# The characters that HubSpot decodes in the URL before it signs it.
_DECODED_BY_HUBSPOT = {f"%{ord(character):02X}": character for character in ":/?@!$'()*,;"}
_ESCAPE = re.compile("|".join(_DECODED_BY_HUBSPOT), re.IGNORECASE)
_SIGNED_METHODS = ("GET", "POST")
_IN_WORDS = {"{id}": "the id", "{url}": "the query"}


class Kind(StrEnum):
    """How a presented signature is compared."""

    HMAC = "hmac"
    ED25519 = "ed25519"
    ECDSA = "ecdsa"
    TOKEN = "token"  # noqa: S105 - not a secret


_KINDS = {Scheme.ED25519: Kind.ED25519, Scheme.ECDSA: Kind.ECDSA}


class Presented(NamedTuple):
    """One signature of a call, well-formed but not compared yet."""

    kind: Kind
    value: str
    encoding: Encoding = Encoding.HEX


class Evidence(NamedTuple):
    """``materials`` are the forms of the signed bytes, of which one has to match.

    ``timestamp`` is in seconds since the epoch, as signed. ``event_id`` is the signed id that
    stands outside the body.
    """

    signatures: tuple[Presented, ...]
    materials: tuple[bytes, ...]
    algorithm: Algorithm = Algorithm.SHA256
    timestamp: float | None = None
    event_id: str | None = None


class Headers:
    """The headers of a call by lower-case name."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def one(self, name: str) -> str | None:
        """The header's value, None if it is missing.

        Raises ``RefusalError`` if it is empty, occurs twice or is not printable ASCII.
        """
        values = self._values.get(name.lower())
        if values is None:
            return None
        if len(values) > 1:
            raise malformed(f"{name} occurs {len(values)} times")
        if not values[0]:
            raise malformed(f"{name} is empty")
        if not (values[0].isascii() and values[0].isprintable()):
            raise malformed(f"{name} is not ASCII")
        return values[0]

    def required(self, name: str) -> str:
        value = self.one(name)
        if value is None:
            raise RefusalError(RefusalReason.SIGNATURE_MISSING, f"{name} is missing")
        return value

    def required_single(self, name: str) -> str:
        """A required value without a comma, with which servers join repeated headers."""
        value = self.required(name)
        if "," in value:
            raise malformed(f"{name} has a comma, or occurs twice")
        return value


def malformed(detail: str) -> RefusalError:
    return RefusalError(RefusalReason.SIGNATURE_MALFORMED, detail)


def missing(detail: str) -> RefusalError:
    return RefusalError(RefusalReason.SIGNATURE_MISSING, detail)


def read_evidence(preset: Preset, call: Call) -> Evidence:
    """Reads what the table says of the sender. Raises ``RefusalError`` if it is not there."""
    headers = Headers(call.headers)
    if preset.scheme is Scheme.NUMBERED:
        values = _numbered(preset, headers)
        return Evidence(_well_formed(preset, values), (call.body,), preset.algorithm)
    names = _names(preset, headers)
    value = headers.required(names.signature)
    timestamp_text = headers.required_single(names.timestamp) if names.timestamp else ""
    if preset.layout is Layout.FIELDS:
        timestamp_text, values = _fields(preset, names.signature, value)
        signatures = _well_formed(preset, values)
    elif preset.layout is Layout.LIST:
        signatures = _listed(preset, names.signature, value)
    elif preset.scheme is Scheme.TOKEN:
        signatures = (Presented(Kind.TOKEN, value),)
    else:
        signatures = _well_formed(preset, [_without_prefix(preset, names.signature, value)])
    timestamp = parse_timestamp(timestamp_text, preset.timestamp_unit) if timestamp_text else None
    event_id = headers.required_single(names.id) if names.id else None
    if event_id is not None and len(event_id) > MAX_EVENT_ID_CHARS:
        raise malformed(f"{names.id} is longer than {MAX_EVENT_ID_CHARS} characters")
    _check_boundaries(preset, call, event_id)
    urls = [call.url]
    if preset.has_decoded_url and (decoded := decoded_by_hubspot(call.url)) != call.url:
        urls.append(decoded)
    materials = [
        signed_material(preset.template, call, timestamp_text, event_id or "", url) for url in urls
    ]
    return Evidence(signatures, tuple(materials), preset.algorithm, timestamp, event_id)


def _check_boundaries(preset: Preset, call: Call, event_id: str | None) -> None:
    """Refuses fields whose bytes could also belong to the field beside them."""
    if "{method}" in preset.template and call.method not in _SIGNED_METHODS:
        raise malformed("the method runs no script")
    query = query_of_signed_url(call.url) if "{url}" in preset.template else ""
    if crossed := _crossed_separator(preset.template, {"{id}": event_id or "", "{url}": query}):
        field, separator = crossed
        raise malformed(
            f"{_IN_WORDS[field]} contains “{separator}”, which ends it in the signed text"
        )
    if preset.body_begins:
        _check_beginning(preset.body_begins, call, query)


def _crossed_separator(template: str, free_texts: Mapping[str, str]) -> tuple[str, str] | None:
    """The field, and the separator beside it, that make the text readable in another way.

    ``free_texts`` are the parts of fields that a caller chooses, by placeholder.
    """
    for left, separator, right, _ in boundaries_of(template):
        if not separator:
            continue
        text = free_texts.get(left)
        if text is not None and (text + separator).find(separator) != len(text):
            return left, separator
        text = free_texts.get(right)
        if text is not None and (separator + text).rfind(separator) != 0:
            return right, separator
    return None


def query_of_signed_url(url: str) -> str:
    """The query with its question mark: what a caller chooses of the URL.

    Raises ``RefusalError`` for a fragment: no client sends one, and it would take any bytes.
    """
    if "#" in url:
        raise malformed("the URL has a fragment")
    _, mark, query = url.partition("?")
    return mark + query


def _check_beginning(body_begins: str, call: Call, query: str) -> None:
    """Refuses a body that could also be the end of the query, with which GET ends."""
    begins = call.body[:1].decode("latin-1")
    if (begins and call.method == "GET") or begins not in body_begins:
        raise malformed("the body could be the end of the URL")
    if set(body_begins) & set(query):
        raise malformed("the end of the URL could be the beginning of the body")


def signed_material(template: str, call: Call, timestamp: str, event_id: str, url: str) -> bytes:
    """The bytes that the sender signed, by the template."""
    if template == "{body}":
        return call.body
    values = {
        "{body}": call.body,
        "{timestamp}": timestamp.encode(),
        "{id}": event_id.encode(),
        "{method}": call.method.encode("utf-8", "surrogatepass"),
        "{url}": url.encode("utf-8", "surrogatepass"),
    }
    parts = PLACEHOLDER.split(template)
    return b"".join(values[part] if part in values else part.encode() for part in parts)


def parse_timestamp(text: str, unit: TimestampUnit) -> float:
    """Seconds since the epoch. Raises ``RefusalError`` if the text is not a time of that unit."""
    if unit is TimestampUnit.ISO_8601:
        if not _ISO_8601.fullmatch(text):
            raise malformed("the time is not ISO 8601")
        try:
            return datetime.fromisoformat(text).astimezone(UTC).timestamp()
        except (ValueError, OverflowError):
            raise malformed("the time is not ISO 8601") from None
    if not _NUMBER.fullmatch(text):
        raise malformed("the time is not a number")
    return float(text) / (1000 if unit is TimestampUnit.MILLISECONDS else 1)


def decoded_by_hubspot(url: str) -> str:
    """The URL with the escapes decoded that HubSpot decodes before it signs."""
    return _ESCAPE.sub(lambda found: _DECODED_BY_HUBSPOT[found[0].upper()], url)


def is_well_formed(value: str, encoding: Encoding) -> bool:
    """Whether the value consists of the encoding's characters; its length is not judged."""
    return _ALPHABETS[encoding].fullmatch(value) is not None


def _names(preset: Preset, headers: Headers) -> SignatureHeaders:
    for names in preset.headers:
        if names.signature in headers:
            return names
    raise missing(f"{preset.headers[0].signature} is missing")


def _without_prefix(preset: Preset, name: str, value: str) -> str:
    if not value.startswith(preset.prefix):
        raise malformed(f"{name} does not begin with {preset.prefix}")
    return value.removeprefix(preset.prefix)


def _well_formed(preset: Preset, values: Sequence[str]) -> tuple[Presented, ...]:
    """The first signatures that are well-formed; raises ``RefusalError`` if none is."""
    kind = _KINDS.get(preset.scheme, Kind.HMAC)
    found = tuple(
        Presented(kind, value, preset.encoding)
        for value in values[:MAX_SIGNATURES]
        if is_well_formed(value, preset.encoding)
    )
    if not found:
        raise malformed(f"the signature is empty or not {preset.encoding}")
    return found


def _fields(preset: Preset, name: str, value: str) -> tuple[str, list[str]]:
    """The time and the signatures of a header such as ``t=1,v1=abc``."""
    if preset.separator != "," and "," in value:
        raise malformed(f"{name} has a comma, or occurs twice")
    pairs = [item.strip().partition("=") for item in value.split(preset.separator)]
    if not all(equals for _, equals, _ in pairs):
        raise malformed(f"{name} is not a list of fields")
    times = [text for key, _, text in pairs if key == preset.timestamp_key]
    if len(times) != 1:
        raise malformed(f"{name} has {len(times)} times")
    if not times[0]:
        raise malformed("the time is not a number")
    signatures = [text for key, _, text in pairs if key == preset.signature_key]
    if not signatures:
        raise missing(f"{name} has no {preset.signature_key}")
    return times[0], signatures


def _listed(preset: Preset, name: str, value: str) -> tuple[Presented, ...]:
    """The signatures of a list such as ``v1,abc v1a,def`` or ``v1=abc,v1=def``."""
    items = [item.strip() for item in value.split(preset.separator)]
    if preset.scheme is not Scheme.STANDARD:
        if not all("=" in item for item in items):
            raise malformed(f"{name} is not a list of signatures")
        mine = [
            each.removeprefix(preset.prefix) for each in items if each.startswith(preset.prefix)
        ]
        if not mine:
            raise missing(f"{name} has no {preset.prefix}")
        return _well_formed(preset, mine)
    if not all(item.count(",") == 1 for item in items):
        raise malformed(f"{name} is not a list of versions and signatures")
    versions = {"v1": Kind.HMAC, "v1a": Kind.ED25519}
    pairs = [item.split(",") for item in items]
    known = [(versions[version], text) for version, text in pairs if version in versions]
    if not known:
        raise missing(f"{name} has no signature of a known version")
    found = tuple(
        Presented(kind, text, Encoding.BASE64)
        for kind, text in known[:MAX_SIGNATURES]
        if is_well_formed(text, Encoding.BASE64)
    )
    if not found:
        raise malformed("the signature is empty or not base64")
    return found


def _numbered(preset: Preset, headers: Headers) -> list[str]:
    """The values of headers that end in a number, in its order."""
    base = preset.headers[0].signature
    names = [f"{base}-{number}" for number in range(1, MAX_NUMBERED_HEADERS + 1)]
    values = [headers.required_single(name) for name in names if name in headers]
    if not values:
        raise missing(f"{base}-1 is missing")
    return values
