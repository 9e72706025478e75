"""The rules of a hook as its calls need them: read with the hook, defaults applied."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings

from scripts_engine.models.call_rules import DAY_SECONDS, Idempotency, ReplyMode
from scripts_engine.senders import PRESETS, HmacOptions, Rules, preset_with

# Columns of a hook that set a rule for its calls. Where all are empty, there are no rules.
CONDITIONS = (
    "sender",
    "allowed_networks",
    "methods",
    "max_body_bytes",
    "idempotency",
    "calls_per_minute",
    "max_concurrent_runs",
    "reply_mode",
    "accepted_status",
    "max_attempts",
    "script__max_concurrent_runs",
)
# Columns that refine those.
DETAILS = (
    "idempotency_window_seconds",
    "burst",
    "hmac",
    "event_id_pointers",
    "verify_token_ciphertext",
    "handshake_expected_until",
    "signed_url",
    "tolerance_seconds",
    "signing_secret_id",
    "signing_secret__ciphertext",
    "signing_secret__ends_at",
    "previous_signing_secret_id",
    "previous_signing_secret__ciphertext",
    "previous_signing_secret__ends_at",
)
COLUMNS = CONDITIONS + DETAILS

_OPTIONS = {
    "header": "header",
    "algorithm": "algorithm",
    "encoding": "encoding",
    "prefix": "prefix",
    "template": "template",
    "timestampHeader": "timestamp_header",
    "idHeader": "id_header",
    "secretEncoding": "secret_encoding",
}

ALL_METHODS = ("GET", "POST")
# The default burst is the calls a minute divided by this.
BURSTS_A_MINUTE = 10
# The status of the reply to a queued call, unless the sender expects another one.
ACCEPTED_STATUS = 202


class StoredSecret(NamedTuple):
    id: uuid.UUID
    ciphertext: bytes


class CallRules(NamedTuple):
    """What a hook demands of its calls. Secrets stay encrypted until they are needed."""

    sender: Rules | None
    """The verify token is left out: it stays encrypted too."""
    verify_token_ciphertext: bytes | None
    signed_url: str
    """What the sender signs in place of the hook's URL; ``""``: the hook's URL."""
    secrets: Sequence[StoredSecret]
    """The live signing secrets, newest first; at most two."""
    allowed_networks: Sequence[str]
    """Empty: all."""
    methods: Sequence[str]
    max_body_bytes: int
    idempotency: str
    """``none``, ``event-id`` or ``body-hash``."""
    idempotency_window_seconds: int
    calls_per_minute: int | None
    burst: int
    """0 where the calls a minute are unlimited."""
    max_concurrent_runs: int | None
    max_concurrent_runs_of_script: int | None
    reply_mode: str
    """``script`` or ``accepted``."""
    accepted_status: int
    """The status of the reply to a call that was queued."""
    max_attempts: int


def rules_of_call(columns: Sequence[Any], now: datetime) -> CallRules | None:
    """Takes the values of ``COLUMNS``; ``None`` if they set no rule."""
    if not any(columns[: len(CONDITIONS)]):
        return None
    hook = dict(zip(COLUMNS, columns, strict=True))
    return rules_of_columns(hook, now, _live_secrets(hook, now))


def rules_of_columns(
    hook: Mapping[str, Any], now: datetime, secrets: Sequence[StoredSecret] = ()
) -> CallRules:
    """Takes a hook's columns by name, those of its signing secrets aside."""
    sender = _sender_of(hook, now)
    largest = settings.HOOK_MAX_BODY_BYTES
    return CallRules(
        sender=sender,
        verify_token_ciphertext=hook["verify_token_ciphertext"],
        signed_url=hook["signed_url"],
        secrets=secrets,
        allowed_networks=hook["allowed_networks"] or (),
        methods=hook["methods"] or ALL_METHODS,
        max_body_bytes=min(hook["max_body_bytes"] or largest, largest),
        idempotency=hook["idempotency"] or _default_idempotency(sender),
        idempotency_window_seconds=hook["idempotency_window_seconds"] or DAY_SECONDS,
        calls_per_minute=hook["calls_per_minute"],
        burst=hook["burst"] or _default_burst(hook["calls_per_minute"]),
        max_concurrent_runs=hook["max_concurrent_runs"],
        max_concurrent_runs_of_script=hook["script__max_concurrent_runs"],
        reply_mode=hook["reply_mode"] or ReplyMode.SCRIPT,
        accepted_status=hook["accepted_status"] or default_accepted_status(hook["sender"]),
        max_attempts=hook["max_attempts"] or settings.QUEUE_MAX_ATTEMPTS,
    )


def _sender_of(hook: Mapping[str, Any], now: datetime) -> Rules | None:
    if not hook["sender"]:
        return None
    options, expected_until = hook["hmac"], hook["handshake_expected_until"]
    return Rules(
        preset=hook["sender"],
        hmac=None if options is None else hmac_options(options),
        tolerance_seconds=hook["tolerance_seconds"],
        event_id_pointers=tuple(hook["event_id_pointers"] or ()),
        is_handshake_expected=expected_until is not None and expected_until > now,
        allowed_rate=hook["calls_per_minute"],
    )


def hmac_options(columns: Mapping[str, str]) -> HmacOptions:
    """The options of the sender ``hmac`` as their column holds them, under their API names."""
    return HmacOptions(
        **{_OPTIONS[name]: value for name, value in columns.items() if value is not None}
    )


def default_accepted_status(sender: str) -> int:
    """The status with which the sender takes a call for accepted; ``""``: any sender."""
    preset = PRESETS.get(sender)
    return ACCEPTED_STATUS if preset is None else preset.accepted_status


def _default_idempotency(sender: Rules | None) -> str:
    if sender is None:
        return Idempotency.NONE
    preset = preset_with(sender.preset, sender.hmac)
    has_event_id = sender.event_id_pointers or (preset is not None and preset.has_event_id)
    return Idempotency.EVENT_ID if has_event_id else Idempotency.NONE


def _default_burst(calls_per_minute: int | None) -> int:
    return 0 if calls_per_minute is None else max(1, calls_per_minute // BURSTS_A_MINUTE)


def _live_secrets(hook: Mapping[str, Any], now: datetime) -> Sequence[StoredSecret]:
    found = []
    for name in ("signing_secret", "previous_signing_secret"):
        ciphertext, ends_at = hook[f"{name}__ciphertext"], hook[f"{name}__ends_at"]
        if ciphertext is not None and (ends_at is None or ends_at > now):
            found.append(StoredSecret(hook[f"{name}_id"], bytes(ciphertext)))
    return found
