from typing import NamedTuple

from django.utils import timezone

from accounts import credentials
from accounts.audit import record
from accounts.flows.rotate_api_key import checked_overlap
from accounts.models import AuthEventKind, User
from config.http.origin import NOWHERE, Origin
from scripts_engine.models import Hook, Script


class IssuedHook(NamedTuple):
    hook: Hook
    call_token: str


def issue_hook(
    script: Script, *, name: str = "", origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """A new hook and its call token, which exists nowhere else and is shown once.

    Raises ``ValidationError`` by field.
    """
    hook = Hook(script=script, name=name.strip())
    call_token = _give_call_token(hook)
    hook.full_clean()
    hook.save()
    _record(AuthEventKind.CALL_TOKEN_ISSUED, hook, origin, by)
    return IssuedHook(hook, call_token)


def rotate_call_token(
    hook: Hook, *, overlap_seconds: int = 0, origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """A new call token; the old one is good for the overlap, 0 to 7 days.

    Raises ``ValidationError`` by field.
    """
    overlap = checked_overlap(overlap_seconds)
    hook.previous_digest, hook.previous_pepper_version = hook.digest, hook.pepper_version
    hook.previous_valid_until = timezone.now() + overlap
    call_token = _give_call_token(hook)
    hook.save(
        update_fields=[
            "digest",
            "pepper_version",
            "previous_digest",
            "previous_pepper_version",
            "previous_valid_until",
        ]
    )
    _record(AuthEventKind.CALL_TOKEN_ROTATED, hook, origin, by)
    return IssuedHook(hook, call_token)


def _give_call_token(hook: Hook) -> str:
    call_token = credentials.generate_secret(credentials.SecretKind.CALL_TOKEN)
    digest = credentials.digest(call_token)
    hook.digest, hook.pepper_version = digest.value, digest.pepper_version
    return call_token


def _record(kind: AuthEventKind, hook: Hook, origin: Origin, by: User | None) -> None:
    record(kind, origin, user=by, organisation=hook.organisation, credential=hook.pk)
