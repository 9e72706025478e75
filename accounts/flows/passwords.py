"""Setting passwords, which only staff have. Hashing is left to the caller: it is slow."""

from accounts.audit import record_about
from accounts.models import AuditReason, AuthEventKind, User
from core.http.origin import Origin


def save_password(user: User, *, origin: Origin, by: User | None = None) -> None:
    """Saves the user's new hash, and nothing else of the user.

    ``by`` is the administrator who set it, if it was not the user.
    """
    user.save(update_fields=["password"])
    record_password(user, origin=origin, by=by)


def record_password(user: User, *, origin: Origin, by: User | None = None) -> None:
    """Records a password that was set or, if it is unusable now, removed."""
    reason = "" if user.has_usable_password() else AuditReason.PASSWORD_REMOVED
    record_about(AuthEventKind.PASSWORD_SET, origin, user, by=by, reason=reason)
