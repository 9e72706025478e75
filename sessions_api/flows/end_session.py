from collections.abc import Iterable

from django.db import transaction

from accounts.audit import Ended, record_ends
from accounts.models import AuthEventKind, User
from core.http.origin import NOWHERE, Origin
from sessions_api.models import Session


def end_session(session: Session, *, origin: Origin = NOWHERE, by: User | None = None) -> None:
    """Gone at once, everywhere. The key or device token that opened it stays valid.

    The audit names who did it: its owner, or the administrator ``by``.
    """
    end_sessions([session], origin=origin, by=by)


def end_sessions(
    sessions: Iterable[Session], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[Session]:
    """Likewise, in as many queries for many as for one.

    Answers those that it ended: not those that were gone already.
    """
    asked = [session.pk for session in sessions]
    with transaction.atomic():
        there = list(
            Session.objects.select_for_update(of=("self",))
            .with_owners()
            .filter(pk__in=asked)
            .order_by("pk")
        )
        Session.objects.filter(pk__in=[session.pk for session in there]).delete()
    record_ends(
        AuthEventKind.SESSION_ENDED,
        origin,
        [_ended(session, by) for session in there],
    )
    return there


def _ended(session: Session, by: User | None) -> Ended:
    api_key, owner = session.api_key, session.user
    if owner is not None:
        return Ended(session.pk, owner.tenant_id, owner.email, by or owner)
    return Ended(session.pk, None if api_key is None else api_key.organisation_id, by=by)
