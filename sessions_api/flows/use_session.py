from django.conf import settings
from django.utils import timezone

from sessions_api.models import Session


def use_session(token: str) -> Session | None:
    """The live session of the token, its use noted; ``None`` if there is none."""
    session = Session.objects.find_live(token)
    if session is not None:
        _note_use(session)
    return session


def _note_use(session: Session) -> None:
    """Moves the idle limit on, with at most one write per ``SESSION_USE_WRITTEN_EVERY``."""
    now = timezone.now()
    due_before = now - settings.SESSION_USE_WRITTEN_EVERY
    if session.last_used_at > due_before:
        return
    session.last_used_at = now
    session.expires_at = session.expiry_after_use_at(now)
    Session.objects.filter(pk=session.pk, last_used_at__lte=due_before).update(
        last_used_at=now, expires_at=session.expires_at
    )
