"""Writing the audit log. Each entry is committed on its own."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from core.http.origin import Origin
from core.plain_text import storable


def record(
    kind: AuthEventKind,
    origin: Origin,
    *,
    user: User | None = None,
    organisation: Organisation | None = None,
    email: str = "",
    credential: object = "",
    reason: str = "",
) -> None:
    """Writes one event. Call it outside the transaction that the event is about.

    ``credential`` is a public id, never a secret. Only superusers see an event without an
    organisation.
    """
    _event(
        kind,
        origin,
        user_id=None if user is None else user.pk,
        organisation_id=None if organisation is None else organisation.pk,
        email=email or (user.email if user else ""),
        credential=str(credential),
        reason=reason,
    ).save()


def record_about(
    kind: AuthEventKind,
    origin: Origin,
    subject: User,
    *,
    by: User | None = None,
    credential: object = "",
    reason: str = "",
) -> None:
    """Writes an event about a user's own profile, credentials or sessions.

    The event belongs to the organisation that manages the user (``User.home``).
    ``by`` is the administrator who acted, if it was not the user. Otherwise like ``record``.
    """
    _event(
        kind,
        origin,
        user_id=(by or subject).pk,
        organisation_id=subject.tenant_id,
        email=subject.email,
        credential=str(credential),
        reason=reason,
    ).save()


class Ended(NamedTuple):
    """An ended credential: its public id, its owner, and the user who ended it."""

    credential: UUID | str
    organisation_id: UUID | None
    email: str = ""
    by: User | None = None


def record_ends(kind: AuthEventKind, origin: Origin, ended: Iterable[Ended]) -> None:
    """Writes one event for each credential, in one statement. Otherwise like ``record``."""
    AuthEvent.objects.bulk_create(
        _event(
            kind,
            origin,
            user_id=None if one.by is None else one.by.pk,
            organisation_id=one.organisation_id,
            email=one.email or (one.by.email if one.by else ""),
            credential=str(one.credential),
        )
        for one in ended
    )


def record_about_address(
    kind: AuthEventKind,
    origin: Origin,
    email: str,
    reason: str = "",
    *,
    by: User | None = None,
    credential: object = "",
) -> None:
    """Writes an event about a canonical address, which may or may not have a user.

    Runs the same two statements in both cases, so that timing does not reveal whether there is
    one. Otherwise like ``record_about``.
    """
    subject = User.objects.only("pk", "home_id", "is_superuser").filter(email=email).first()
    actor = by or subject
    _event(
        kind,
        origin,
        user_id=None if actor is None else actor.pk,
        organisation_id=None if subject is None else subject.tenant_id,
        email=email,
        credential=str(credential),
        reason=reason,
    ).save()


def _event(
    kind: AuthEventKind,
    origin: Origin,
    *,
    email: str,
    user_id: UUID | None,
    organisation_id: UUID | None,
    credential: str = "",
    reason: str = "",
) -> AuthEvent:
    return AuthEvent(
        kind=kind,
        reason=reason,
        organisation_id=organisation_id,
        user_id=user_id,
        email=_kept(email),
        credential=_kept(credential)[:60],
        client_address=origin.client_address or None,
        user_agent=_kept(origin.user_agent),
        request_id=origin.request_id,
    )


def _kept(text: str) -> str:
    """The text, storable and cut to the length of an e-mail address."""
    return storable(text)[:254]
