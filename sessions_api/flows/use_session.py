"""Using a session: finding it by its token and extending it."""

from django.conf import settings
from django.utils import timezone

from accounts import credentials
from sessions_api.models import Session


def use_session(token: str, client_address: str) -> Session | None:
    """Returns the live session with this token, and records its use; ``None`` if there is none.

    A session of an API key is valid only from the key's allowed networks.
    """
    session = Session.objects.find_live(token)
    if session is None:
        return None
    if session.api_key is not None and not session.api_key.allows(client_address):
        return None
    _record_use(session, token)
    return session


def _record_use(session: Session, token: str) -> None:
    """Extends the idle limit, with at most one write per ``SESSION_USE_WRITTEN_EVERY``.

    The write also stores a digest with the newest pepper. If the clock was set back since the
    session was opened, its limits count from now; otherwise they would end too late.
    """
    now, read_at = timezone.now(), session.last_used_at
    if abs(now - read_at) < settings.SESSION_USE_WRITTEN_EVERY:
        return
    session.created_at = min(session.created_at, now)
    session.last_used_at = now
    session.expires_at = session.expiry_after_use_at(now)
    Session.objects.filter(pk=session.pk, last_used_at=read_at).update(
        created_at=session.created_at,
        last_used_at=now,
        expires_at=session.expires_at,
        digest=credentials.digest(token).value,
    )
