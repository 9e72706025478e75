from accounts.audit import record
from accounts.models import AuthEventKind, User
from config.http.origin import NOWHERE, Origin
from sessions_api.models import Session


def end_session(session: Session, *, origin: Origin = NOWHERE, by: User | None = None) -> None:
    """Gone at once, everywhere. The key or device token that opened it stays valid.

    The audit names who did it: its owner, or the administrator ``by``.
    """
    deleted, _ = Session.objects.filter(pk=session.pk).delete()
    if deleted:
        record(
            AuthEventKind.SESSION_ENDED,
            origin,
            user=by or session.user,
            email="" if session.user is None else session.user.email,
            organisation=session.organisation,
            credential=session.pk,
        )
