"""Writing the audit log: who did what to whom, and from where.

Flows record; endpoints only say who acts and from where (``core.http.origin``). A new event takes a
member of ``AuthEventKind``, or of the kinds that an app registers, and one call of a function of
this module. With ``AUDIT_LOG=stdout`` each event is also a line for a collector of logs.
"""

import json
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import TextChoices

from accounts.models import (
    ActorKind,
    ApiKey,
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Membership,
    Organisation,
    SubjectKind,
    User,
)
from accounts.models.auth_event import MAX_REASON_LENGTH
from core.http.origin import Actor, Origin
from core.plain_text import storable

STRANGER = Actor(ActorKind.STRANGER, "", "")
# The client has not proved who it is, even if its browser is logged in as somebody.
_BY_STRANGERS = frozenset(
    {
        AuthEventKind.SESSION_REFUSED,
        AuthEventKind.PIN_REQUESTED,
        AuthEventKind.PIN_REFUSED,
        AuthEventKind.ADMIN_LOGIN_REFUSED,
    }
)
_BY_THE_SYSTEM = frozenset(
    {AuthEventKind.PIN_SENT, AuthEventKind.PIN_NOT_SENT, AuthEventKind.RATE_LIMITED}
)
# Without another actor, done by the user that the event is about.
_BY_ONESELF = frozenset(
    {
        AuthEventKind.SESSION_OPENED,
        AuthEventKind.SESSION_ENDED,
        AuthEventKind.DEVICE_ADDED,
        AuthEventKind.DEVICE_REVOKED,
        AuthEventKind.INVITATION_ACCEPTED,
        AuthEventKind.SECOND_FACTOR_CHANGED,
        AuthEventKind.ADMIN_LOGIN,
    }
)
_SYSTEM = Actor(ActorKind.SYSTEM, "", "")
logger = structlog.get_logger(__name__)


def person(user: User) -> Actor:
    return Actor(ActorKind.USER, str(user.pk), user.email, is_operator=user.is_superuser)


def program(api_key: ApiKey) -> Actor:
    return Actor(
        ActorKind.API_KEY, api_key.key, api_key.name, organisation_id=str(api_key.organisation_id)
    )


def command_origin(name: str) -> Origin:
    """The origin of what a management command does."""
    return Origin(actor=Actor(ActorKind.COMMAND, name, f"manage.py {name}"))


class Subject(NamedTuple):
    """What or whom an event is about. ``label`` is its name at this moment, never a secret."""

    kind: TextChoices
    id: object
    label: str

    @classmethod
    def user(cls, user: User) -> "Subject":
        return cls(SubjectKind.USER, user.pk, user.email)

    @classmethod
    def api_key(cls, api_key: ApiKey) -> "Subject":
        return cls(SubjectKind.API_KEY, api_key.pk, api_key.name)

    @classmethod
    def device(cls, device_token: DeviceToken) -> "Subject":
        owner = device_token.user.email
        label = f"{device_token.label} of {owner}" if device_token.label else owner
        return cls(SubjectKind.DEVICE, device_token.pk, label)

    @classmethod
    def organisation(cls, organisation: Organisation) -> "Subject":
        return cls(SubjectKind.ORGANISATION, organisation.pk, organisation.name)


def record(
    kind: TextChoices,
    origin: Origin,
    *,
    about: Subject | None = None,
    user: User | None = None,
    by: User | None = None,
    organisation: Organisation | None = None,
    email: str = "",
    credential: object = "",
    reason: str = "",
) -> None:
    """Writes one event. Call it outside any transaction that a refusal rolls back.

    ``user`` is the user concerned, and ``about`` what else the event is about, such as a device.
    ``by`` is the person who acted, if ``origin`` does not say it. ``credential`` is a public id,
    never a secret.

    Without ``organisation``, the event belongs to the one that manages the user (``User.home``).
    Only superusers see an event that belongs to none.
    """
    concerned = by or user
    manager_id = None if user is None else user.tenant_id
    subject = about or (None if user is None else Subject.user(user))
    event = _event(
        kind,
        origin,
        _actor(kind, origin, by, user),
        subject,
        user_id=None if concerned is None else concerned.pk,
        organisation_id=manager_id if organisation is None else organisation.pk,
        email=email or _email_of(user or by),
        credential=str(credential),
        reason=reason,
    )
    event.save()
    write_lines([event])


class Happened(NamedTuple):
    """An event about one of an organisation's objects."""

    kind: TextChoices
    about: Subject
    reason: str = ""
    credential: object = ""


def record_all(origin: Origin, organisation: Organisation, events: Iterable[Happened]) -> None:
    """Writes the events in one statement, in their order. Otherwise like ``record``."""
    known: dict[tuple[str, UUID], bool] = {}
    rows = [
        _event(
            event.kind,
            origin,
            origin.actor,
            event.about,
            user_id=None,
            organisation_id=organisation.pk,
            email="",
            credential=str(event.credential),
            reason=event.reason,
            known=known,
        )
        for event in events
    ]
    AuthEvent.objects.bulk_create(rows)
    write_lines(rows)


class Ended(NamedTuple):
    """An ended credential, its tenant, its owner if that is a user, and the user who ended it."""

    about: Subject
    organisation_id: UUID | None
    credential: UUID | str
    owner: User | None = None
    by: User | None = None
    reason: str = ""


def record_ends(kind: TextChoices, origin: Origin, ended: Iterable[Ended]) -> None:
    """Writes one event for each credential, in one statement. Otherwise like ``record``."""
    known: dict[tuple[str, UUID], bool] = {}
    events = []
    for one in ended:
        concerned = one.by or one.owner
        events.append(
            _event(
                kind,
                origin,
                _actor(kind, origin, one.by, one.owner),
                one.about,
                user_id=None if concerned is None else concerned.pk,
                organisation_id=one.organisation_id,
                email=_email_of(one.owner or one.by),
                credential=str(one.credential),
                reason=one.reason,
                known=known,
            )
        )
    AuthEvent.objects.bulk_create(events)
    write_lines(events)


def record_about_address(
    kind: TextChoices,
    origin: Origin,
    email: str,
    reason: str = "",
    *,
    by: User | None = None,
    credential: object = "",
) -> None:
    """Writes an event about a canonical address, which may or may not have a user.

    Runs the same two statements in both cases, so that timing does not reveal whether there is
    one. Otherwise like ``record``.
    """
    subject = User.objects.only("pk", "home_id", "is_superuser").filter(email=email).first()
    concerned = by or subject
    about = Subject(
        SubjectKind.ADDRESS if subject is None else SubjectKind.USER,
        "" if subject is None else subject.pk,
        email,
    )
    event = _event(
        kind,
        origin,
        _actor(kind, origin, by, None),
        about if email else None,
        user_id=None if concerned is None else concerned.pk,
        organisation_id=None if subject is None else subject.tenant_id,
        email=email,
        credential=str(credential),
        reason=reason,
    )
    event.save()
    write_lines([event])


def _actor(
    kind: TextChoices, origin: Origin, by: User | None, subject: User | None
) -> Actor | None:
    if kind in _BY_STRANGERS:
        return STRANGER
    if by is not None:
        return person(by)
    if origin.actor is not None:
        return origin.actor
    if kind in _BY_THE_SYSTEM:
        return _SYSTEM
    if kind in _BY_ONESELF and subject is not None:
        return person(subject)
    return None


def _event(
    kind: TextChoices,
    origin: Origin,
    actor: Actor | None,
    subject: Subject | None,
    *,
    email: str,
    user_id: UUID | None,
    organisation_id: UUID | None,
    credential: str = "",
    reason: str = "",
    known: dict[tuple[str, UUID], bool] | None = None,
) -> AuthEvent:
    event = AuthEvent(
        kind=kind,
        reason=storable(reason)[:MAX_REASON_LENGTH],
        organisation_id=organisation_id,
        user_id=user_id,
        email=_kept(email),
        credential=_kept(credential)[:60],
        client_address=origin.client_address or None,
        user_agent=_kept(origin.user_agent),
        request_id=origin.request_id,
    )
    if user_id is None and actor is not None and actor.kind == ActorKind.USER and actor.id:
        event.user_id = UUID(actor.id)
    if subject is not None:
        event.subject_kind = subject.kind
        event.subject_id = _kept(str(subject.id))[:60]
        event.subject_label = _kept(subject.label)
    if actor is not None:
        is_self = subject is not None and actor.id == str(subject.id)
        event.actor_kind = _kind_shown(
            actor, organisation_id, is_self, {} if known is None else known
        )
        event.actor_id = _kept(actor.id)[:60]
        if event.actor_kind == actor.kind:
            event.actor_label = _kept(actor.label)
        else:
            event.actor_label = ""
            event.email = "" if event.email == actor.label else event.email
    return event


def _kind_shown(
    actor: Actor,
    organisation_id: UUID | None,
    is_self: bool,
    known: dict[tuple[str, UUID], bool],
) -> str:
    """The actor's kind as the organisation of the event may know it.

    Decided when the event is written: the label is kept only if that organisation may read it, so
    that neither a list nor a search can reveal a superuser or a user of another organisation.
    """
    if organisation_id is None or is_self or not actor.id:
        return actor.kind
    if actor.is_operator:
        return ActorKind.OPERATOR
    if actor.kind == ActorKind.API_KEY:
        is_own = actor.organisation_id == str(organisation_id)
    elif actor.kind == ActorKind.USER:
        key = (actor.id, organisation_id)
        if key not in known:
            known[key] = Membership.objects.filter(
                user=UUID(actor.id), organisation=organisation_id
            ).exists()
        is_own = known[key]
    else:
        is_own = True
    return actor.kind if is_own else ActorKind.OUTSIDER


def shown_actor(origin: Origin, organisation_id: UUID) -> Actor:
    """The actor as the organisation may know it, whose label is never empty."""
    actor = origin.actor or _SYSTEM
    kind = _kind_shown(actor, organisation_id, False, {})
    if kind == actor.kind:
        return Actor(kind, _kept(actor.id)[:60], _kept(actor.label) or ActorKind(kind).label)
    return Actor(kind, _kept(actor.id)[:60], ActorKind(kind).label)


def _email_of(user: User | None) -> str:
    return "" if user is None else user.email


def _kept(text: str) -> str:
    """The text, storable and cut to the length of an e-mail address."""
    return storable(text)[:254]


def write_lines(events: Iterable[AuthEvent]) -> None:
    """Writes one JSON object a line for each event, once it is committed, if so set."""
    if settings.IS_AUDIT_WRITTEN_TO_STDOUT:
        transaction.on_commit(partial(_write_now, list(events)))


def _write_now(events: list[AuthEvent]) -> None:
    for event in events:
        # A command answers on its standard output.
        stream = sys.stderr if event.actor_kind == ActorKind.COMMAND else sys.stdout
        try:
            stream.write(json.dumps(as_document(event)) + "\n")
            stream.flush()
        except OSError:
            logger.exception("An event was not written to the audit lines")


def as_document(event: AuthEvent) -> dict[str, Any]:
    """The event with the names that GraphQL gives its fields, and its organisation and user."""
    return {
        "audit": event.kind,
        "id": str(event.pk),
        "at": event.at.isoformat(),
        "organisation": _id_text(event.organisation_id),
        "user": _id_text(event.user_id),
        "reason": event.reason,
        "email": event.email,
        "credential": event.credential,
        "clientAddress": event.client_address,
        "userAgent": event.user_agent,
        "requestId": event.request_id,
        "actorKind": event.actor_kind,
        "actorId": event.actor_id,
        "actorLabel": event.actor_label,
        "subjectKind": event.subject_kind,
        "subjectId": event.subject_id,
        "subjectLabel": event.subject_label,
    }


def _id_text(value: object) -> str | None:
    return None if value is None else str(value)
