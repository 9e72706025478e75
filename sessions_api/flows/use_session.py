from django.conf import settings
from django.utils import timezone

from accounts import credentials
from sessions_api.models import Session


def use_session(token: str, client_address: str) -> Session | None:
    """The live session of the token, its use noted; ``None`` if there is none.

    A session of a key is good only where its key is: in the key's networks.
    """
    session = Session.objects.find_live(token)
    if session is None:
        return None
    if session.api_key is not None and not session.api_key.allows(client_address):
        return None
    _note_use(session, token)
    return session


def _note_use(session: Session, token: str) -> None:
    """Moves the idle limit on, with at most one write per ``SESSION_USE_WRITTEN_EVERY``.

    A session from before a rotation of the peppers moves under the newest along with it. The
    limits of one from before the clock was set back count from now: they would last until the
    clock is there again.
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
