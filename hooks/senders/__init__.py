"""Verification of senders: pure functions over a call, without Django and without a database.

Others import from here and from nowhere deeper; README.md introduces the library.
"""

from hooks.senders.contract import (
    Call,
    Greeting,
    Hint,
    HmacOptions,
    InvalidOptionError,
    InvalidSecretError,
    Refusal,
    RefusalReason,
    Rules,
    Strength,
    Verified,
)
from hooks.senders.diagnosis import diagnose
from hooks.senders.preset import (
    PRESETS,
    Handshake,
    Preset,
    check_hmac,
    check_pointers,
    credential_headers,
    headers_to_keep,
    headers_without_credentials,
    preset_with,
)
from hooks.senders.signing import SampleEvent, sample_event
from hooks.senders.vectors import (
    InvalidVectorsError,
    Trial,
    Vector,
    read_vectors,
    shipped_vectors,
    try_vector,
)
from hooks.senders.verification import check_secret, examine

__all__ = [
    "PRESETS",
    "Call",
    "Greeting",
    "Handshake",
    "Hint",
    "HmacOptions",
    "InvalidOptionError",
    "InvalidSecretError",
    "InvalidVectorsError",
    "Preset",
    "Refusal",
    "RefusalReason",
    "Rules",
    "SampleEvent",
    "Strength",
    "Trial",
    "Vector",
    "Verified",
    "check_hmac",
    "check_pointers",
    "check_secret",
    "credential_headers",
    "diagnose",
    "examine",
    "headers_to_keep",
    "headers_without_credentials",
    "preset_with",
    "read_vectors",
    "sample_event",
    "shipped_vectors",
    "try_vector",
]
