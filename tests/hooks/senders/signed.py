"""Calls that tests sign themselves, and what the verification makes of them."""

import hashlib
import hmac
from dataclasses import replace
from typing import Any

from hooks.senders import Call, Greeting, Refusal, Rules, Verified, examine
from hooks.senders.vectors import Vector, shipped_vectors

NOW = 1_700_000_000
URL = "https://moonhook.example/hook/org/script/token"


def vector(identifier: str) -> Vector:
    return next(each for each in shipped_vectors() if each.id == identifier)


def outcome_of(changed: Vector) -> Verified | Greeting | Refusal:
    return examine(changed.rules, changed.secrets, changed.call, now=changed.now)


def with_call(original: Vector, **changes: Any) -> Vector:
    return replace(original, call=replace(original.call, **changes))


def with_header(original: Vector, name: str, value: str) -> Vector:
    """The vector with one header's value changed."""
    headers = tuple(
        (each, value if each.lower() == name.lower() else old)
        for each, old in original.call.headers
    )
    assert headers != original.call.headers
    return with_call(original, headers=headers)


def without_header(original: Vector, name: str) -> Vector:
    kept = tuple(pair for pair in original.call.headers if pair[0].lower() != name.lower())
    assert kept != original.call.headers
    return with_call(original, headers=kept)


def call(body: bytes = b"{}", *headers: tuple[str, str], **changes: Any) -> Call:
    return replace(Call("POST", URL, "", headers, body), **changes)


def hex_digest(secret: str, material: bytes) -> str:
    return hmac.new(secret.encode(), material, hashlib.sha256).hexdigest()


def github_call(secret: str, body: bytes) -> Call:
    return call(body, ("X-Hub-Signature-256", f"sha256={hex_digest(secret, body)}"))


GITHUB = Rules("github")
