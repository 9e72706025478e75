from accounts.audit import record
from accounts.models import AuthEventKind
from config.http.origin import NOWHERE, Origin
from sessions_api.models import Session


def end_session(session: Session, *, origin: Origin = NOWHERE) -> None:
    """Gone at once, everywhere. The key or device token that opened it stays valid."""
    deleted, _ = Session.objects.filter(pk=session.pk).delete()
    if deleted:
        record(
            AuthEventKind.SESSION_ENDED,
            origin,
            user=session.user,
            organisation=session.organisation,
            credential=session.pk,
        )
