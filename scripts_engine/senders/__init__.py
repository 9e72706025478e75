"""Verification of senders: pure functions over a call, without Django and without a database."""

from scripts_engine.senders.contract import (
    Call,
    Greeting,
    Hint,
    HmacOptions,
    InvalidOptionError,
    InvalidSecretError,
    RefusalReason,
    Refused,
    Rules,
    Strength,
    Verified,
)
from scripts_engine.senders.diagnosis import diagnose
from scripts_engine.senders.preset import (
    PRESETS,
    Preset,
    check_hmac,
    check_pointers,
    headers_to_keep,
    preset_with,
)
from scripts_engine.senders.verification import check_secret, examine

__all__ = [
    "PRESETS",
    "Call",
    "Greeting",
    "Hint",
    "HmacOptions",
    "InvalidOptionError",
    "InvalidSecretError",
    "Preset",
    "RefusalReason",
    "Refused",
    "Rules",
    "Strength",
    "Verified",
    "check_hmac",
    "check_pointers",
    "check_secret",
    "diagnose",
    "examine",
    "headers_to_keep",
    "preset_with",
]
