"""Scopes in the audit log: what a key had and has, and what it was refused for want of."""

from collections.abc import Iterable

from accounts.audit import Subject, record
from accounts.models import ApiKey, AuthEventKind
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from accounts.scopes import Scopes, names_of
from core.http.origin import Origin


def change_of_scopes(before: Scopes, after: Scopes) -> str:
    """What an event about a key says of its scopes, as that about a role: from what to what."""
    return f"{names_of(before) or 'none'} to {names_of(after) or 'none'}"


def record_refused_scopes(api_key: ApiKey, names: Iterable[str], *, origin: Origin) -> None:
    """Records refusals, at most one for each key and scope in 15 minutes on all nodes."""
    new = [
        name
        for name in names
        if is_first(windows.REFUSED_SCOPES_ON_RECORD, "refused-scope", api_key.key, name)
    ]
    for name in new:
        record(
            AuthEventKind.SCOPE_REFUSED,
            origin,
            about=Subject.api_key(api_key),
            organisation=api_key.organisation,
            credential=api_key.key,
            reason=name,
        )
