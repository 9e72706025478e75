from typing import NamedTuple

from accounts import credentials
from scripts_engine.models import Hook, Script


class IssuedHook(NamedTuple):
    hook: Hook
    call_token: str


def issue_hook(script: Script, *, name: str = "") -> IssuedHook:
    """A new hook and its call token, which exists nowhere else and is shown once.

    Raises ``ValidationError`` by field.
    """
    hook = Hook(script=script, name=name.strip())
    call_token = _give_call_token(hook)
    hook.full_clean()
    hook.save()
    return IssuedHook(hook, call_token)


def rotate_call_token(hook: Hook) -> IssuedHook:
    """A new call token in the place of the old one, which is refused from now on."""
    call_token = _give_call_token(hook)
    hook.save(update_fields=["digest", "pepper_version"])
    return IssuedHook(hook, call_token)


def _give_call_token(hook: Hook) -> str:
    call_token = credentials.generate_secret(credentials.SecretKind.CALL_TOKEN)
    digest = credentials.digest(call_token)
    hook.digest, hook.pepper_version = digest.value, digest.pepper_version
    return call_token
