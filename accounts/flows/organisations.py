"""Creating organisations; adding, inviting and removing members."""

from collections.abc import Collection
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import TextChoices
from django.utils import timezone

from accounts.addresses import canonical_email
from accounts.audit import Subject, record
from accounts.flows.minting import PLATFORM, Maker
from accounts.flows.notices import send_invitation
from accounts.flows.password_links import send_password_link
from accounts.flows.users import change_role, locked, record_password
from accounts.messages.quotas import count_mail_of, may_send_mail
from accounts.models import (
    ActorKind,
    AuditReason,
    AuthEventKind,
    Invitation,
    Membership,
    Organisation,
    Role,
    SubjectKind,
    User,
)
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.revisions import REVISION, revise
from core.errors import ForbiddenError, NotFoundError
from core.http.origin import NOWHERE, Actor, Origin
from core.names import name_key, name_taken


def create_organisation(name: str, *, origin: Origin = NOWHERE) -> Organisation:
    """Creates an organisation. Raises ``ValidationError`` for a name that is not one or is taken.

    Only who creates organisations is told of names: an administrator may rename to any, and so
    learns of no other tenant.
    """
    organisation = Organisation(name=name.strip())
    organisation.full_clean()
    key = name_key(organisation.name)
    if any(name_key(taken) == key for taken in Organisation.objects.values_list("name", flat=True)):
        raise name_taken(organisation.name)
    organisation.save()
    record_about_organisation(AuthEventKind.ORGANISATION_CREATED, organisation, origin)
    return organisation


def save_organisation(
    organisation: Organisation,
    changed: Collection[str],
    *,
    expected_revision: int | None = None,
    origin: Origin,
) -> None:
    """Saves the named fields of the organisation, and records their names.

    Raises ``ConflictError`` if it is not at ``expected_revision``.
    """
    with transaction.atomic():
        stored = Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        stored.check_revision(expected_revision)
        if not changed:
            return
        for name in changed:
            setattr(stored, name, getattr(organisation, name))
        revise(stored, stored.pk, origin)
        stored.save(update_fields={*changed, *REVISION})
    reason = ", ".join(sorted(changed))
    record_about_organisation(AuthEventKind.ORGANISATION_CHANGED, stored, origin, reason)


def record_about_organisation(
    kind: TextChoices, organisation: Organisation, origin: Origin, reason: str = ""
) -> None:
    about = Subject.organisation(organisation)
    record(kind, origin, about=about, organisation=organisation, reason=reason)


def add_member(
    organisation: Organisation,
    *,
    email: str,
    role: str = "",
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
) -> Membership | Invitation:
    """Gives a member the role; invites any other existing user.

    An open invitation takes the new role, without a second e-mail. Raises ``NotFoundError`` for an
    unknown address and for a superuser's, ``ForbiddenError`` for an inactive organisation that
    would invite, ``BeyondMakerError`` and ``RateLimitedError``.
    """
    address, role = canonical_email(email), role or Role.MEMBER.value
    maker.changes_role(role)
    with transaction.atomic():
        user = _find(address)
        membership = Membership.objects.filter(organisation=organisation, user=user).first()
        if membership is None:
            invitation = _invite(organisation, user, address, role, origin, maker)
        else:
            return change_role(organisation, user, role, origin=origin, maker=maker)
    record_about_invitation(AuthEventKind.MEMBER_INVITED, origin, invitation)
    return invitation


def record_about_invitation(kind: AuthEventKind, origin: Origin, invitation: Invitation) -> None:
    """Records an event for the inviting organisation; it names only the invited address."""
    record(
        kind,
        origin,
        about=Subject(SubjectKind.INVITATION, invitation.pk, invitation.email),
        organisation=invitation.organisation,
        email=invitation.email,
        credential=invitation.pk,
        reason=invitation.role,
    )


def _find(address: str) -> User:
    user = User.objects.find_by_email(address)
    if user is not None:
        # Orders this before or after the answer to an earlier invitation.
        user = locked(user)
    if user is None or user.is_superuser or user.email != address:
        raise NotFoundError("There is no user with this e-mail. Use createUser.")
    return user


def _invite(
    organisation: Organisation,
    user: User,
    address: str,
    role: str,
    origin: Origin,
    maker: Maker,
) -> Invitation:
    earlier = Invitation.objects.filter(organisation=organisation, user=user)
    invitation = earlier.open().first()
    if invitation is not None:
        maker.changes_role(invitation.role)
        invitation.email, invitation.role = address, role
        invitation.offers_admin_login = False
        invitation.save(update_fields=["email", "role", "offers_admin_login"])
        return invitation
    count_invitation(organisation, user.email)
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


def count_invitation(organisation: Organisation, address: str) -> None:
    """Counts one invitation, and its e-mail, to the canonical address.

    Raises ``ForbiddenError`` for an inactive organisation, and ``RateLimitedError``.
    """
    if not organisation.is_active:
        raise ForbiddenError("An inactive organisation cannot invite users.")
    hit([windows.INVITATIONS_OF_ORGANISATION], "invitation", str(organisation.pk))
    hit(
        [windows.INVITATIONS_TO_ADDRESS_OF_ORGANISATION],
        "invitation-to-of",
        str(organisation.pk),
        address,
    )
    hit([windows.INVITATIONS_TO_ADDRESS], "invitation-to", address)
    count_mail_of(organisation.pk)


def accept_invitation(user: User, invitation_id: UUID, *, origin: Origin = NOWHERE) -> None:
    """Makes the user a member, with the role of the invitation.

    A password for the admin stops working: ``_end_password`` says why. A user whom the invitation
    offers a login to the admin gets a link to set a password. Raises ``NotFoundError`` for an
    invitation that is not the user's, has expired, or whose organisation is inactive.
    """
    with transaction.atomic():
        invitation = _take(user, invitation_id)
        user = locked(user)
        is_password_ended = _end_password(user)
        Membership.objects.create(
            organisation=invitation.organisation, user=user, role=invitation.role
        )
        if invitation.offers_admin_login and (is_password_ended or not user.is_staff):
            _offer_password(user, invitation.organisation, origin)
    if is_password_ended:
        record_password(user, origin=origin, by=user)
    _tell_inviter(AuthEventKind.INVITATION_ACCEPTED, invitation)
    record(AuthEventKind.INVITATION_ACCEPTED, origin, user=user)


def _end_password(user: User) -> bool:
    """Ends the admin password of a user who joins; returns whether there was one.

    It would open every organisation that makes the user an administrator, and a home may know it.
    The next is set by a link, which shows that the user reads the invited mailbox: staff choose
    their e-mail themselves, and may have chosen that of another. Call with the user's row locked.
    """
    if not user.has_usable_password():
        return False
    user.set_unusable_password()
    user.save(update_fields=["password"])
    return True


def _offer_password(user: User, organisation: Organisation, origin: Origin) -> None:
    if may_send_mail(organisation.pk):
        send_password_link.enqueue(
            str(user.pk), str(organisation.pk), user.email, request_id=origin.request_id
        )
        return
    reason = AuditReason.MAIL_LIMIT
    record(AuthEventKind.RATE_LIMITED, NOWHERE, organisation=organisation, reason=reason)


def decline_invitation(user: User, invitation_id: UUID) -> None:
    """Deletes the invitation. Raises ``NotFoundError`` as ``accept_invitation`` does."""
    with transaction.atomic():
        invitation = _take(user, invitation_id)
    _tell_inviter(AuthEventKind.INVITATION_DECLINED, invitation)


def _take(user: User, invitation_id: UUID) -> Invitation:
    """Deletes and returns the invitation; only one of concurrent answers gets it.

    Locks the user's row, so that no change of the profile runs while the user becomes a member of
    another organisation.
    """
    locked(user)
    open_ones = user.invitations.answerable().select_related("organisation")
    invitation = open_ones.filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFoundError("There is no such invitation.")
    deleted, _ = Invitation.objects.open().filter(pk=invitation_id).delete()
    if deleted != 1:
        raise NotFoundError("There is no such invitation.")
    return invitation


def _tell_inviter(kind: AuthEventKind, invitation: Invitation) -> None:
    """Records the answer without its origin, which the inviting organisation may not know.

    Of the user it may know the invited address only.
    """
    invited = Actor(ActorKind.USER, "", invitation.email)
    record_about_invitation(kind, Origin(actor=invited), invitation)


def remove_member(
    organisation: Organisation,
    user: User,
    *,
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
) -> bool:
    """Ends the membership or the open invitation; returns whether there was one.

    The user, their devices, sessions and other memberships stay; sessions that ended with the
    organisation stay ended. A user who leaves home has no home from then on: no organisation that
    adds them later may change their profile. Raises ``BeyondMakerError`` unless the maker has all
    scopes of the role that is taken.
    """
    with transaction.atomic():
        user = locked(user)
        maker.changes_role(*_roles_at(organisation, user))
        is_removed = _end_membership(organisation, user)
        invitation = _end_invitation(organisation, user)
    if is_removed:
        record(AuthEventKind.MEMBER_REMOVED, origin, user=user, organisation=organisation)
    if invitation is not None:
        record_about_invitation(AuthEventKind.INVITATION_WITHDRAWN, origin, invitation)
    return is_removed or invitation is not None


def _roles_at(organisation: Organisation, user: User) -> list[str]:
    """The roles that the user has or is offered there."""
    roles = Membership.objects.filter(organisation=organisation, user=user)
    offered = Invitation.objects.of_organisation(organisation).filter(user=user)
    return [
        *roles.values_list("role", flat=True),
        *offered.order_by().values_list("role", flat=True),
    ]


def _end_membership(organisation: Organisation, user: User) -> bool:
    memberships = Membership.objects.filter(organisation=organisation, user=user)
    deleted, _ = memberships.delete()
    if deleted and user.home_id == organisation.pk:
        user.home = None
        user.save(update_fields=["home"])
    if deleted:
        _keep_ended_sessions_ended(organisation, user)
    return deleted == 1


def _keep_ended_sessions_ended(organisation: Organisation, user: User) -> None:
    """Keeps sessions ended that were ended by deactivating the organisation.

    A user without an organisation may have sessions, so the earlier ones would become valid again.
    """
    ended_at = Organisation.objects.values_list("sessions_valid_after", flat=True).get(
        pk=organisation.pk
    )
    if ended_at is None or user.organisations.filter(is_active=True).exists():
        return
    user.sessions_valid_after = max(ended_at, user.sessions_valid_after or ended_at)
    user.save(update_fields=["sessions_valid_after"])


def _end_invitation(organisation: Organisation, user: User) -> Invitation | None:
    invitations = Invitation.objects.of_organisation(organisation).filter(user=user)
    invitation = invitations.select_related("organisation").first()
    deleted, _ = invitations.delete()
    return invitation if deleted else None
