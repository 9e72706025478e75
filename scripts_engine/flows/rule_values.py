"""The values that the rules of a hook's calls may have."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

from accounts.networks import canonical_networks
from scripts_engine.flows.rules_of_call import ALL_METHODS, hmac_options
from scripts_engine.models import Hook
from scripts_engine.models.call_rules import Idempotency, ReplyMode
from scripts_engine.senders import InvalidOptionError, Preset, check_pointers, preset_with

MAX_NETWORKS = 64
# Columns of a hook that ``update_hook`` changes; ``None`` resets each to its default.
RULES = frozenset(
    {
        "event_id_pointers",
        "signed_url",
        "tolerance_seconds",
        "allowed_networks",
        "methods",
        "max_body_bytes",
        "idempotency",
        "idempotency_window_seconds",
        "calls_per_minute",
        "burst",
        "max_concurrent_runs",
        "reply_mode",
        "accepted_status",
        "max_attempts",
    }
)
# Those of text, which are blank when they are not set.
_TEXTS = frozenset({"signed_url", "idempotency", "reply_mode"})
# Printable ASCII without spaces: what a request line may contain.
_URL = re.compile(r"[!-~]{1,2000}")


def cleaned_rules(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the given columns out of ``RULES`` as they are stored.

    Ranges of numbers are checked by the model. Raises ``ValidationError`` by field.
    """
    return {name: _cleaned(name, changes[name]) for name in sorted(RULES & changes.keys())}


def _cleaned(name: str, value: Any) -> Any:
    if value is None or value in ("", []):
        if name == "methods" and value is not None:
            raise invalid(name, "Choose at least one method.")
        return "" if name in _TEXTS else None
    clean = _CLEANERS.get(name)
    return value if clean is None else clean(value)


def _clean_networks(value: Sequence[str]) -> list[str]:
    try:
        return canonical_networks(value, maximum=MAX_NETWORKS)
    except ValidationError as error:
        raise ValidationError({"allowed_networks": error}) from None


def _clean_methods(value: Sequence[str]) -> list[str]:
    if not set(value) <= set(ALL_METHODS):
        raise invalid("methods", "Choose out of GET and POST.")
    return [method for method in ALL_METHODS if method in value]


def _clean_pointers(value: Sequence[str]) -> list[str]:
    try:
        check_pointers(tuple(value))
    except InvalidOptionError as error:
        raise invalid(error.field, str(error)) from None
    return list(dict.fromkeys(value))


def _clean_url(value: str) -> str:
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


def _clean_size(value: int) -> int:
    if not 1 <= value <= settings.HOOK_MAX_BODY_BYTES:
        raise invalid("max_body_bytes", f"Enter 1 to {settings.HOOK_MAX_BODY_BYTES:,} bytes.")
    return value


def _clean_idempotency(value: str) -> str:
    if value not in Idempotency.values:
        raise invalid("idempotency", "Choose None, EventId or BodyHash.")
    return value


def _clean_reply_mode(value: str) -> str:
    """The default is stored as blank, so that calls of the hook have no rule to apply."""
    if value not in ReplyMode.values:
        raise invalid("reply_mode", "Choose Script or Accepted.")
    return "" if value == ReplyMode.SCRIPT else value


_CLEANERS: dict[str, Callable[[Any], Any]] = {
    "allowed_networks": _clean_networks,
    "methods": _clean_methods,
    "event_id_pointers": _clean_pointers,
    "signed_url": _clean_url,
    "max_body_bytes": _clean_size,
    "idempotency": _clean_idempotency,
    "reply_mode": _clean_reply_mode,
}


def preset_of(hook: Hook) -> Preset | None:
    """The hook's sender with the hook's options of the sender ``hmac``."""
    if not hook.sender:
        return None
    return preset_with(hook.sender, None if hook.hmac is None else hmac_options(hook.hmac))


def check_fit(hook: Hook) -> None:
    """Checks rules against the sender and each other. Raises ``ValidationError`` by field."""
    for name, problem in misfits(hook).items():
        raise invalid(name, problem)
    check_bodies_differ(hook)


def check_bodies_differ(hook: Hook) -> None:
    """Refuses to compare the bodies of anyone's GET, which are empty.

    Raises ``ValidationError``.
    """
    compares = hook.idempotency == Idempotency.BODY_HASH
    if compares and not hook.sender and "GET" in (hook.methods or ALL_METHODS):
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
