"""The values that the rules of a hook's calls may have, alone and together."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

from accounts.addresses import canonical_networks
from hooks.call_sender import hmac_options
from hooks.models import Hook, Idempotency, ReplyMode
from hooks.senders import InvalidOptionError, Preset, check_pointers, preset_with

ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Of a hook whose methods are not set.
DEFAULT_METHODS = ("GET", "POST")
MAX_NETWORKS = 64
MAX_ORIGINS = 20
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535
# As browsers write them: names in ASCII (IDNA), or an IPv6 address in brackets.
_LABEL = r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_LABEL}(\.{_LABEL}){{0,20}}|\[[0-9a-f:]{{2,39}}\])"
    r"(:(?P<port>[0-9]{1,5}))?"
)
# Printable ASCII without spaces: what a request line may contain.
_URL = re.compile(r"[!-~]{1,2000}")


def clean_networks(value: Sequence[str]) -> list[str]:
    try:
        return canonical_networks(value, maximum=MAX_NETWORKS)
    except ValidationError as error:
        raise ValidationError({"allowed_networks": error}) from None


def clean_methods(value: Sequence[str]) -> list[str]:
    if not value:
        raise invalid("methods", "Choose at least one method.")
    if not set(value) <= set(ALL_METHODS):
        raise invalid("methods", f"Choose out of {', '.join(ALL_METHODS)}.")
    return [method for method in ALL_METHODS if method in value]


def clean_origins(value: Sequence[str]) -> list[str]:
    """Serialised origins (RFC 6454, section 6.2), in lower case and without a default port."""
    origins = list(dict.fromkeys(_clean_origin(each) for each in value))
    if len(origins) > MAX_ORIGINS:
        raise invalid("allowed_origins", f"Enter at most {MAX_ORIGINS} origins.")
    return origins


def _clean_origin(text: str) -> str:
    matched = _ORIGIN.fullmatch(text.strip().lower())
    if matched is None or (matched["port"] and not 1 <= int(matched["port"]) <= _MAX_PORT):
        raise invalid(
            "allowed_origins", "Enter origins such as https://shop.example, without a path."
        )
    scheme, host, port = matched["scheme"], matched["host"], matched["port"]
    is_default = not port or int(port) == _DEFAULT_PORTS[scheme]
    return f"{scheme}://{host}" + ("" if is_default else f":{int(port)}")


def clean_pointers(value: Sequence[str]) -> list[str]:
    try:
        check_pointers(tuple(value))
    except InvalidOptionError as error:
        raise invalid(error.field, str(error)) from None
    return list(dict.fromkeys(value))


def clean_url(value: str) -> str:
    url = value.strip()
    try:
        parts = urlsplit(url)
        is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        is_absolute = has_port = False
    if not (is_absolute and has_port and _URL.fullmatch(url)) or "#" in url:
        raise invalid("signed_url", "Enter a URL such as https://example.org/path?query.")
    return url


def clean_size(value: int) -> int:
    if not 1 <= value <= settings.HOOK_MAX_BODY_BYTES:
        raise invalid("max_body_bytes", f"Enter 1 to {settings.HOOK_MAX_BODY_BYTES:,} bytes.")
    return value


def clean_idempotency(value: str) -> str:
    if value not in Idempotency.values:
        raise invalid("idempotency", "Choose None, EventId or BodyHash.")
    return value


def clean_reply_mode(value: str) -> str:
    """The default is stored as blank, so that calls of the hook have no rule to apply."""
    if value not in ReplyMode.values:
        raise invalid("reply_mode", "Choose Script or Accepted.")
    return "" if value == ReplyMode.SCRIPT else value


def preset_of(hook: Hook) -> Preset | None:
    """The hook's sender with the hook's options of the sender ``hmac``."""
    return preset_of_columns(hook.sender, hook.hmac)


def preset_of_columns(sender: str, hmac: Mapping[str, str] | None) -> Preset | None:
    return preset_with(sender, None if hmac is None else hmac_options(hmac)) if sender else None


def check_fit(hook: Hook) -> None:
    """Checks rules against the sender and each other. Raises ``ValidationError`` by field."""
    for name, problem in misfits(hook).items():
        raise invalid(name, problem)
    check_bodies_differ(hook)
    if hook.allowed_origins and hook.calls_per_minute is None:
        raise invalid(
            "allowed_origins",
            "Any visitor of a page can call the hook, so origins need a limit: set the calls a "
            "minute as well.",
        )


def check_bodies_differ(hook: Hook) -> None:
    """Refuses to compare the bodies of anyone's GET, which are empty.

    Raises ``ValidationError``.
    """
    compares = hook.idempotency == Idempotency.BODY_HASH
    if compares and not hook.sender and "GET" in (hook.methods or DEFAULT_METHODS):
        raise invalid(
            "idempotency",
            "Bodies of GET are empty, so they do not tell repeated calls from new ones. Choose "
            "another idempotency, POST as the only method, or a sender.",
        )


def misfits(hook: Hook) -> dict[str, str]:
    """The columns that contradict the hook's sender, each with the problem."""
    preset, found = preset_of(hook), {}
    if hook.event_id_pointers and not (preset and preset.takes_pointers):
        found["event_id_pointers"] = "JSON pointers need a sender that signs the body."
    has_event_id = preset is not None and (preset.has_event_id or bool(hook.event_id_pointers))
    if hook.idempotency == Idempotency.EVENT_ID and not has_event_id:
        found["idempotency"] = (
            "What this sender signs names no event id. Set JSON pointers to it, if it is in a "
            "signed body."
        )
    if hook.idempotency == Idempotency.BODY_HASH and preset and preset.refuses_body_hash:
        found["idempotency"] = (
            f"Bodies of {preset.title} do not tell repeated deliveries from new events."
        )
    return found


def invalid(field: str, message: str) -> ValidationError:
    """``message`` never contains the value."""
    return ValidationError({field: ValidationError(message, code="invalid")})
