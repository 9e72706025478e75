"""The table of senders: how each signs, greets and repeats, read from presets.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hooks.senders.contract import (
    MAX_POINTERS,
    MAX_TOLERANCE_SECONDS,
    MIN_TOLERANCE_SECONDS,
    PLACEHOLDER,
    HmacOptions,
    InvalidOptionError,
    Rules,
    Strength,
    boundaries_of,
)
from hooks.senders.secrets import SecretFormat

_TABLE = Path(__file__).with_name("presets.toml")
# A field name of HTTP (RFC 9110, section 5.1).
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
# A JSON pointer (RFC 6901).
_POINTER = re.compile(r"(?:/(?:[^/~\0-\x1f]|~[01])*)+")
MAX_NUMBERED_HEADERS = 100


class PresetError(ValueError):
    """A row of the table is wrong; the text names the sender and the field."""


class Scheme(StrEnum):
    """How the signature of a call is read and compared."""

    HMAC = "hmac"
    STANDARD = "standard"
    ED25519 = "ed25519"
    ECDSA = "ecdsa"
    TOKEN = "token"  # noqa: S105 - not a secret
    NUMBERED = "numbered"
    TWILIO = "twilio"
    MAILGUN = "mailgun"
    CLIENT_STATE = "client-state"
    NONE = "none"


class Layout(StrEnum):
    """How a header holds signatures: one value, a list of values, or fields like t=1,v1=abc."""

    VALUE = "value"
    LIST = "list"
    FIELDS = "fields"


class Algorithm(StrEnum):
    SHA1 = "sha1"
    SHA256 = "sha256"
    SHA512 = "sha512"


class Encoding(StrEnum):
    HEX = "hex"
    BASE64 = "base64"


class TimestampUnit(StrEnum):
    SECONDS = "s"
    MILLISECONDS = "ms"
    ISO_8601 = "iso8601"


class Handshake(StrEnum):
    NONE = "none"
    SLACK = "slack"
    META = "meta"
    MICROSOFT_GRAPH = "microsoft-graph"
    DROPBOX = "dropbox"
    X = "x"
    DISCORD = "discord"
    ZOOM = "zoom"
    ASANA = "asana"
    XERO = "xero"
    CLOUDEVENTS = "cloudevents"


@dataclass(frozen=True, slots=True)
class SignatureHeaders:
    """The headers that one form of a signature is made of."""

    signature: str
    timestamp: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """One sender.

    ``headers`` holds alternatives: the first whose signature header is in the call is read.
    ``template`` is the signed text; empty if the sender signs nothing. ``weaker`` names signature
    headers, and ``weaker_keys`` signature fields, that the sender also sends and that are not
    accepted. ``is_body_object``: a body other than a JSON object is refused, because the sender's
    handshake signs any other text for everyone, or because nothing else says where the body ends
    beside a URL. ``body_begins``: the first characters of a body beside a URL, which the query
    never contains. ``takes_any_secret``: the secret is entered at the sender, so we may choose it.
    ``methods`` is the default for the methods that run the script; handshakes are answered whatever
    it says.
    """

    name: str
    title: str
    strength: Strength
    scheme: Scheme
    secret: SecretFormat
    retries: str
    steps: tuple[str, ...]
    page: str
    headers: tuple[SignatureHeaders, ...] = ()
    layout: Layout = Layout.VALUE
    separator: str = ""
    timestamp_key: str = ""
    signature_key: str = ""
    prefix: str = ""
    algorithm: Algorithm = Algorithm.SHA256
    encoding: Encoding = Encoding.HEX
    template: str = "{body}"
    has_decoded_url: bool = False
    is_body_object: bool = False
    body_begins: str = ""
    timestamp_unit: TimestampUnit = TimestampUnit.SECONDS
    timestamp_pointer: str = ""
    tolerance_seconds: int | None = None
    event_id_pointers: tuple[str, ...] = ()
    handshake: Handshake = Handshake.NONE
    handshake_method: str = "POST"
    accepted_status: int = 202
    patience_seconds: int | None = None
    refuses_body_hash: bool = False
    takes_any_secret: bool = False
    extra_headers: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()
    weaker_keys: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("POST",)

    @property
    def takes_secret(self) -> bool:
        return self.secret is not SecretFormat.NONE

    @property
    def has_timestamp(self) -> bool:
        """Whether the signed material contains a time."""
        return "{timestamp}" in self.template or bool(self.timestamp_pointer)

    @property
    def has_event_id(self) -> bool:
        """Whether signed material can name the event, without pointers of the hook's own."""
        return "{id}" in self.template or bool(self.event_id_pointers)

    @property
    def takes_pointers(self) -> bool:
        """Whether JSON pointers may find an event id: only in a signed body."""
        return self.strength is Strength.SIGNED and "{body}" in self.template

    @property
    def event_id_place(self) -> str:
        """Where the event id is, in words; empty if nowhere."""
        if self.scheme is Scheme.MAILGUN:
            return "signature.token in the body"
        if "{id}" in self.template:
            return f"header {self.headers[0].id}" if self.headers else "its header"
        return ", ".join(self.event_id_pointers)

    @property
    def own_headers(self) -> tuple[str, ...]:
        """The sender's own headers in lower case: what verification reads, and its ids."""
        names = [
            name
            for each in self.headers
            for name in (each.signature, each.timestamp, each.id)
            if name
        ]
        if self.scheme is Scheme.NUMBERED:
            names = [f"{names[0]}-{number}" for number in range(1, MAX_NUMBERED_HEADERS + 1)]
        every = (*names, *self.extra_headers, *self.weaker)
        return tuple(dict.fromkeys(name.lower() for name in every))


def check_hmac(options: HmacOptions) -> None:
    """Raises ``InvalidOptionError`` with the name of the wrong field."""
    _check_field_name("header", options.header)
    _check_choice("algorithm", options.algorithm, Algorithm)
    _check_choice("encoding", options.encoding, Encoding)
    if options.secret_encoding not in ("text", "base64", "hex"):
        raise InvalidOptionError("secret_encoding", "Choose text, base64 or hex.")
    if len(options.prefix) > 64 or not (options.prefix.isascii() and options.prefix.isprintable()):
        raise InvalidOptionError("prefix", "Enter at most 64 printable ASCII characters.")
    _check_template(options.template)
    for field, placeholder in (("timestamp_header", "{timestamp}"), ("id_header", "{id}")):
        name = getattr(options, field)
        if name is not None:
            _check_field_name(field, name)
        elif placeholder in options.template:
            raise InvalidOptionError(field, f"The template has {placeholder}: name its header.")


def check_pointers(pointers: tuple[str, ...]) -> None:
    """Raises ``InvalidOptionError`` unless these are at most 3 JSON pointers (RFC 6901)."""
    if len(pointers) > MAX_POINTERS:
        raise InvalidOptionError(
            "event_id_pointers", f"Enter at most {MAX_POINTERS} JSON pointers."
        )
    for pointer in pointers:
        if len(pointer) > 200 or not _POINTER.fullmatch(pointer):
            raise InvalidOptionError(
                "event_id_pointers", "Enter JSON pointers such as /event/id (RFC 6901)."
            )


@lru_cache(maxsize=1024)
def preset_with(name: str, hmac: HmacOptions | None) -> Preset | None:
    """The sender of that name, with the options of the sender ``hmac`` applied.

    None if there is no such sender or the options are missing or wrong.
    """
    preset = PRESETS.get(name)
    if preset is None or preset.name != "hmac":
        return preset
    if hmac is None:
        return None
    try:
        check_hmac(hmac)
    except InvalidOptionError:
        return None
    headers = SignatureHeaders(
        hmac.header,
        timestamp=hmac.timestamp_header if "{timestamp}" in hmac.template else None,
        id=hmac.id_header if "{id}" in hmac.template else None,
    )
    return replace(
        preset,
        headers=(headers,),
        prefix=hmac.prefix,
        algorithm=Algorithm(hmac.algorithm),
        encoding=Encoding(hmac.encoding),
        template=hmac.template,
        secret=SecretFormat(hmac.secret_encoding),
    )


def headers_to_keep(rules: Rules) -> frozenset[str]:
    """Lower-case names of the headers that explain a refused call: those of every sender."""
    preset = preset_with(rules.preset, rules.hmac)
    own = preset.own_headers if preset else ()
    return _EVERY_HEADER.union(own)


@cache
def credential_headers() -> frozenset[str]:
    """Lower-case names of the headers in which senders send a secret itself."""
    tokens = {
        headers.signature.lower()
        for preset in PRESETS.values()
        if preset.scheme is Scheme.TOKEN
        for headers in preset.headers
    }
    return frozenset(tokens | {name for name in _of_every_sender() if "secret" in name})


def headers_without_credentials() -> frozenset[str]:
    """Lower-case names of what senders send, without those that carry a secret itself."""
    return frozenset(_of_every_sender() - credential_headers())


def _of_every_sender() -> set[str]:
    return {name for preset in PRESETS.values() for name in preset.own_headers}


# Browsers and programs send these with credentials, which refused calls would keep.
_NO_SIGNATURE_HEADERS = frozenset(
    {"authorization", "cookie", "proxy-authorization", "host", "content-length", "content-type"}
)


def _check_field_name(field: str, name: str) -> None:
    if not _FIELD_NAME.fullmatch(name):
        raise InvalidOptionError(field, "Enter the name of a header.")
    if name.lower() in _NO_SIGNATURE_HEADERS:
        raise InvalidOptionError(field, "Enter the name of a header that only the sender sets.")


def _check_choice(field: str, value: str, choices: type[StrEnum]) -> None:
    if value not in list(choices):
        raise InvalidOptionError(field, f"Choose one of {', '.join(choices)}.")


def _check_template(template: str) -> None:
    if template.count("{body}") != 1:
        raise InvalidOptionError("template", "Write {body} exactly once.")
    rest = PLACEHOLDER.sub("", template)
    if len(template) > 500 or "{" in rest or "}" in rest or not rest.isprintable():
        raise InvalidOptionError(
            "template", "Use {body}, {timestamp}, {id}, {method}, {url} and printable text."
        )
    for boundary in boundaries_of(template):
        if boundary.is_open:
            raise InvalidOptionError(
                "template",
                f"Write a separator between {boundary.left} and {boundary.right}: nothing says "
                "where one ends and the other begins.",
            )


def read_presets(text: str) -> Mapping[str, Preset]:
    """Parses the table. Raises ``PresetError`` naming the sender and the field."""
    try:
        rows = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PresetError(f"presets.toml is not TOML: {error}") from error
    return MappingProxyType({name: _preset(name, row) for name, row in rows.items()})


def _preset(name: str, row: Any) -> Preset:
    if not isinstance(row, dict):
        raise PresetError(f"{name}: is not a table")
    known = {field.name: field for field in fields(Preset) if field.name != "name"}
    if unknown := row.keys() - known.keys():
        raise PresetError(f"{name}: unknown field {min(unknown)}")
    missing = {each for each, field in known.items() if field.default is MISSING} - row.keys()
    if missing:
        raise PresetError(f"{name}: {min(missing)} is missing")
    values: dict[str, Any] = {each: _value(name, each, row[each]) for each in row}
    preset = Preset(name=name, **values)
    _check(preset)
    return preset


_ENUMS: dict[str, type[StrEnum]] = {
    "strength": Strength,
    "scheme": Scheme,
    "secret": SecretFormat,
    "layout": Layout,
    "algorithm": Algorithm,
    "encoding": Encoding,
    "timestamp_unit": TimestampUnit,
    "handshake": Handshake,
}
_LISTS = {"steps", "event_id_pointers", "extra_headers", "weaker", "weaker_keys", "methods"}
_NUMBERS = {"tolerance_seconds", "accepted_status", "patience_seconds"}
_SWITCHES = {"refuses_body_hash", "takes_any_secret", "has_decoded_url", "is_body_object"}


def _value(name: str, field: str, value: Any) -> Any:
    if field == "headers":
        return _header_sets(name, value)
    if field in _LISTS:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise PresetError(f"{name}: {field} is not a list of strings")
        return tuple(value)
    kind = int if field in _NUMBERS else bool if field in _SWITCHES else str
    if type(value) is not kind:
        raise PresetError(f"{name}: {field} is not of type {kind.__name__}")
    if field in _ENUMS and value not in list(_ENUMS[field]):
        raise PresetError(f"{name}: {field} is not one of {', '.join(_ENUMS[field])}")
    return _ENUMS[field](str(value)) if field in _ENUMS else value


def _header_sets(name: str, value: Any) -> tuple[SignatureHeaders, ...]:
    known = {field.name for field in fields(SignatureHeaders)}
    if not isinstance(value, list) or not value:
        raise PresetError(f"{name}: headers is not a list of tables")
    for each in value:
        if not isinstance(each, dict) or "signature" not in each or each.keys() - known:
            raise PresetError(f"{name}: headers has a table without signature or with other names")
        if not all(isinstance(v, str) and _FIELD_NAME.fullmatch(v) for v in each.values()):
            raise PresetError(f"{name}: headers has a value that is not the name of a header")
    return tuple(SignatureHeaders(**each) for each in value)


def _check(preset: Preset) -> None:
    """Checks what fields demand of each other."""
    signs_body = preset.template.count("{body}") == 1
    tolerance = preset.tolerance_seconds
    is_in_header = preset.scheme not in (Scheme.MAILGUN, Scheme.CLIENT_STATE, Scheme.NONE)
    problems = {
        # The headers of the sender hmac are options of each hook.
        "headers is missing": is_in_header and not preset.headers and preset.name != "hmac",
        "strength and template contradict each other": signs_body
        != (preset.strength is Strength.SIGNED),
        "template does not say where a field ends": preset.scheme
        not in (Scheme.TWILIO, Scheme.MAILGUN)
        and not (preset.is_body_object or preset.body_begins)
        and any(boundary.is_open for boundary in boundaries_of(preset.template)),
        "tolerance_seconds is missing": preset.has_timestamp and tolerance is None,
        "tolerance_seconds is out of range": tolerance is not None
        and not MIN_TOLERANCE_SECONDS <= tolerance <= MAX_TOLERANCE_SECONDS,
        "layout and separator contradict each other": bool(preset.separator)
        != (preset.layout is not Layout.VALUE),
        "layout needs timestamp_key and signature_key": (preset.layout is Layout.FIELDS)
        != bool(preset.timestamp_key and preset.signature_key),
        "event_id_pointers has no JSON pointer": not all(
            map(_POINTER.fullmatch, preset.event_id_pointers)
        ),
        "event_id_pointers need a signed body": bool(preset.event_id_pointers) and not signs_body,
        "accepted_status is not 200, 202 or 204": preset.accepted_status not in (200, 202, 204),
        "takes_any_secret needs a secret that is text": preset.takes_any_secret
        and preset.secret is not SecretFormat.TEXT,
        "steps or methods is empty": not preset.steps or not preset.methods,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise PresetError(f"{preset.name}: {problem}")


PRESETS = read_presets(_TABLE.read_text(encoding="utf-8"))
# Content-Type says how a body is read, Host which URL was called.
_EVERY_HEADER = frozenset(_of_every_sender() | {"content-type", "host"})
