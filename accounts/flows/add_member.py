from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.audit import record
from accounts.email_address import canonical_email
from accounts.flows.change_profile import held
from accounts.messages.quotas import count_mail_of
from accounts.models import AuthEventKind, Invitation, Membership, Organisation, Role, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.tasks import send_invitation
from core.errors import ForbiddenError, NotFoundError
from core.http.origin import NOWHERE, Origin


def add_member(
    organisation: Organisation, *, email: str, role: str = "", origin: Origin = NOWHERE
) -> Membership | Invitation:
    """Gives a member the role; invites any other existing user, who decides about it.

    Who is invited already gets the role once they accept; no second mail is sent. Raises
    ``NotFoundError`` for an address that nobody has and for a superuser's, ``ForbiddenError`` for
    an inactive organisation that would invite, and ``RateLimitedError``.
    """
    address, role = canonical_email(email), role or Role.MEMBER.value
    with transaction.atomic():
        user = _find(address)
        membership = Membership.objects.filter(organisation=organisation, user=user).first()
        if membership is None:
            invitation = _invite(organisation, user, address, role, origin)
        else:
            membership.role = role
            membership.save(update_fields=["role"])
    if membership is not None:
        record(
            AuthEventKind.MEMBER_ADDED, origin, user=user, organisation=organisation, reason=role
        )
        return membership
    record_about_invitation(AuthEventKind.MEMBER_INVITED, origin, invitation)
    return invitation


def record_about_invitation(kind: AuthEventKind, origin: Origin, invitation: Invitation) -> None:
    """Writes an event for the organisation that invites; names the user by that address only."""
    record(
        kind,
        origin,
        organisation=invitation.organisation,
        email=invitation.email,
        credential=invitation.pk,
        reason=invitation.role,
    )


def _find(address: str) -> User:
    user = User.objects.find_by_email(address)
    if user is not None:
        # An answer to an earlier invitation then comes before this or after it.
        user = held(user)
    if user is None or user.is_superuser or user.email != address:
        raise NotFoundError("There is no user with this e-mail. Use createUser.")
    return user


def _invite(
    organisation: Organisation, user: User, address: str, role: str, origin: Origin
) -> Invitation:
    earlier = Invitation.objects.filter(organisation=organisation, user=user)
    invitation = earlier.open().first()
    if invitation is not None:
        invitation.email, invitation.role = address, role
        invitation.save(update_fields=["email", "role"])
        return invitation
    if not organisation.is_active:
        raise ForbiddenError("An inactive organisation invites nobody.")
    hit([windows.INVITATIONS_OF_ORGANISATION], "invitation", str(organisation.pk))
    hit(
        [windows.INVITATIONS_TO_ADDRESS_OF_ORGANISATION],
        "invitation-to-of",
        str(organisation.pk),
        user.email,
    )
    hit([windows.INVITATIONS_TO_ADDRESS], "invitation-to", user.email)
    count_mail_of(organisation.pk)
    earlier.delete()
    invitation = Invitation.objects.create(
        organisation=organisation,
        user=user,
        email=address,
        role=role,
        expires_at=timezone.now() + settings.INVITATION_LIFETIME,
    )
    send_invitation.enqueue(str(invitation.pk), request_id=origin.request_id)
    return invitation
