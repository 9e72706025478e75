"""What happened to credentials is written down, in a commit of its own."""

from typing import NamedTuple

from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from accounts.plain_text import storable
from config.http.origin import Origin


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
    """Writes one event. Call it outside the transaction that it tells of.

    ``credential`` is a public id, never a secret. Without an organisation only superusers see it.
    """
    AuthEvent.objects.create(
        kind=kind,
        reason=reason,
        organisation=organisation,
        user=user,
        email=_kept(email or (user.email if user else "")),
        credential=_kept(str(credential))[:60],
        client_address=origin.client_address or None,
        user_agent=_kept(origin.user_agent),
        request_id=origin.request_id,
    )


class Subject(NamedTuple):
    """Whom an event is about, as far as the address tells."""

    user: User | None
    organisation: Organisation | None


def subject_of(email: str) -> Subject:
    """The user with the canonical address and the only organisation of theirs.

    Two queries, whether there is such a user or not: who guesses learns nothing from the time.
    """
    user = User.objects.filter(email=email).first()
    organisations = list(Organisation.objects.filter(memberships__user__email=email)[:2])
    return Subject(user, organisations[0] if len(organisations) == 1 else None)


def _kept(text: str) -> str:
    """As long as an address may be."""
    return storable(text)[:254]
