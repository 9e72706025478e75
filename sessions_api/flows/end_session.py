"""Ending sessions."""

from collections.abc import Iterable

from django.db import transaction

from accounts.audit import Ended, Subject, record_ends
from accounts.models import AuthEventKind, SubjectKind, User
from core.http.origin import NOWHERE, Origin
from sessions_api.models import Session


def end_session(session: Session, *, origin: Origin = NOWHERE, by: User | None = None) -> None:
    """Ends one session; see ``end_sessions``."""
    end_sessions([session], origin=origin, by=by)


def end_sessions(
    sessions: Iterable[Session], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[Session]:
    """Ends the sessions immediately and returns those that were still open.

    The keys or device tokens that opened them stay valid. The audit log names ``by``, the
    administrator, or else the owner. The number of queries does not depend on the number of
    sessions.
    """
    requested = [session.pk for session in sessions]
    with transaction.atomic():
        still_open = list(
            Session.objects.select_for_update(of=("self",))
            .with_owners()
            .filter(pk__in=requested)
            .order_by("pk")
        )
        Session.objects.filter(pk__in=[session.pk for session in still_open]).delete()
    record_ends(
        AuthEventKind.SESSION_ENDED,
        origin,
        [_ended(session, by) for session in still_open],
    )
    return still_open


def _ended(session: Session, by: User | None) -> Ended:
    api_key, owner = session.api_key, session.user
    if owner is not None:
        about = Subject(SubjectKind.SESSION, session.pk, owner.email)
        return Ended(about, owner.tenant_id, session.pk, owner=owner, by=by)
    about = Subject(SubjectKind.SESSION, session.pk, "" if api_key is None else api_key.name)
    return Ended(about, None if api_key is None else api_key.organisation_id, session.pk, by=by)
