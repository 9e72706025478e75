"""Authenticates a hook call, by its URL or by HTTP Basic authentication.

Both answer ``None`` for every kind of wrong credential, so that callers cannot tell them apart.
"""

import base64
import binascii
import uuid
from functools import lru_cache

from accounts import credentials
from core.database.ids import KnownId
from scripts_engine.flows.find_callable_hook import find_callable_hook
from scripts_engine.flows.run_spec import RunSpec

_UUID_CHARACTERS = 36


def hook_of_url(organisation_id: str, script_id: str, call_token: str) -> RunSpec | None:
    """Returns what a call of this URL runs."""
    organisation, script = canonical_uuid(organisation_id), canonical_uuid(script_id)
    if organisation is None or script is None or not _is_call_token(call_token):
        return None
    return find_callable_hook(organisation, script, call_token)


def hook_of_basic_auth(organisation_id: str, script_id: str, authorization: str) -> RunSpec | None:
    """Returns what a call with ``Basic base64(HookID:CallToken)`` (RFC 7617) runs."""
    organisation, script = canonical_uuid(organisation_id), canonical_uuid(script_id)
    hook_id_text, _, call_token = _basic_credentials(authorization).partition(":")
    hook_id = canonical_uuid(hook_id_text)
    if organisation is None or script is None or hook_id is None:
        return None
    if not _is_call_token(call_token):
        return None
    return find_callable_hook(organisation, script, call_token, hook_id=hook_id)


def call_token_of_basic_auth(authorization: str) -> str:
    """The call token in Basic credentials, right or wrong; ``""`` if there is none."""
    return _basic_credentials(authorization).partition(":")[2]


def _is_call_token(text: str) -> bool:
    return credentials.is_well_formed(text, credentials.SecretKind.CALL_TOKEN)


def _basic_credentials(authorization: str) -> str:
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def canonical_uuid(text: str) -> uuid.UUID | None:
    """Parses a UUID in its canonical form of 36 characters; no other spelling is accepted."""
    return _parsed(text) if len(text) == _UUID_CHARACTERS else None


# Calls bring the same ids again and again.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> uuid.UUID | None:
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        return None
    return KnownId(parsed) if str(parsed) == text.lower() else None
