from typing import NamedTuple

from accounts import credentials
from accounts.audit import record
from accounts.models import AuthEventKind, User
from core.http.origin import NOWHERE, Origin
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
    call_token = give_call_token(hook)
    hook.full_clean()
    hook.save()
    record_call_token(AuthEventKind.CALL_TOKEN_ISSUED, hook, origin, by)
    return IssuedHook(hook, call_token)


def give_call_token(hook: Hook) -> str:
    """Puts the digest of a new call token into the hook, which is not saved; returns the token."""
    call_token = credentials.generate_secret(credentials.SecretKind.CALL_TOKEN)
    digest = credentials.digest(call_token)
    hook.digest, hook.pepper_version = digest.value, digest.pepper_version
    return call_token


def record_call_token(kind: AuthEventKind, hook: Hook, origin: Origin, by: User | None) -> None:
    record(kind, origin, user=by, organisation=hook.organisation, credential=hook.pk)
