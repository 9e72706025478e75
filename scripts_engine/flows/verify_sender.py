"""Verifies that a call comes from its hook's sender."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from scripts_engine.flows.rules_of_call import CallRules
from scripts_engine.flows.signing_secrets import open_secret, open_verify_token
from scripts_engine.models.call_rules import Idempotency
from scripts_engine.senders import (
    Call,
    Greeting,
    Refused,
    Rules,
    Verified,
    examine,
    preset_with,
)
from scripts_engine.senders.preset import Handshake


class Examined(NamedTuple):
    result: Verified | Greeting | Refused
    secrets: Sequence[str]
    """The live signing secrets, newest first: neither scripts nor runs may hold them."""
    secret_id: uuid.UUID | None
    """The signing secret that matched."""


def verify_sender(
    hook_id: uuid.UUID, rules: CallRules, sender: Rules, call: Call, *, now: float
) -> Examined:
    """``sender`` is that of the rules; ``now`` is the time of the call, in epoch seconds."""
    live = [
        (stored.id, secret)
        for stored in rules.secrets
        if (secret := open_secret(hook_id, stored.ciphertext)) is not None
    ]
    secrets = [secret for _, secret in live]
    result = examine(with_verify_token(hook_id, rules, sender), secrets, call, now=now)
    matched = result.matched_secret if isinstance(result, Verified) else None
    return Examined(result, secrets, None if matched is None else live[matched][0])


def event_id_of(verified: Verified, rules: CallRules) -> str | None:
    """The event id as ``Event`` has it."""
    if verified.event_id is None and rules.idempotency == Idempotency.EVENT_ID:
        return ""
    return verified.event_id


def with_verify_token(hook_id: uuid.UUID, rules: CallRules, sender: Rules) -> Rules:
    ciphertext = rules.verify_token_ciphertext
    if ciphertext is None:
        return sender
    return replace(sender, verify_token=open_verify_token(hook_id, ciphertext))


def greets_by(sender: Rules, method: str) -> bool:
    """Whether the sender's handshake uses this method."""
    preset = preset_with(sender.preset, sender.hmac)
    if preset is None or preset.handshake is Handshake.NONE:
        return False
    return preset.handshake_method == method


def signs_url(sender: Rules) -> bool:
    preset = preset_with(sender.preset, sender.hmac)
    return preset is not None and "{url}" in preset.template
