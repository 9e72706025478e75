"""Inviting a person, known or not, to administer an organisation in the admin.

Nobody gets a login to the admin here: the person gets it by setting a password with the link in an
e-mail (``set_password_by_link``). A user of another home first has to accept the invitation in
their application. Until then nothing of the account changes, and no such link is sent.
"""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.addresses import canonical_email
from accounts.audit import Subject, record
from accounts.flows.minting import Maker
from accounts.flows.notices import send_invitation
from accounts.flows.organisations import count_invitation
from accounts.flows.password_links import send_password_link
from accounts.flows.users import change_role, create_user, locked
from accounts.models import (
    AuditReason,
    AuthEventKind,
    Invitation,
    Membership,
    Organisation,
    Role,
    SubjectKind,
    User,
)
from accounts.rate_limits.addresses import claim_answers
from core.errors import NotFoundError
from core.http.origin import Origin


def invite_administrator(
    organisation: Organisation,
    *,
    email: str,
    name: str = "",
    role: str = Role.ADMINISTRATOR,
    by: User,
    origin: Origin,
) -> bool:
    """Invites the person; false if they can log in already and are an administrator from now on.

    Creates a user for an unknown address, makes a user of this home administrator, and invites any
    other. Superusers and inactive users of other homes look invited, but no e-mail is sent: the
    organisation may not learn of them. Every address counts as an answer, because the lists show
    afterwards which one was unknown. ``name`` is for a new user. ``role`` is any that opens
    something in the admin.

    Raises ``ValidationError`` by field, ``BeyondMakerError`` unless ``by`` has all of the role,
    ``ForbiddenError`` for an inactive organisation, ``NotFoundError`` for an address that changes
    at this moment, and ``RateLimitedError``.
    """
    maker = Maker.person(by, organisation)
    maker.changes_role(role)
    User(email=email, name=name).clean_fields(exclude=["password"])
    address = canonical_email(email)
    claimed = claim_answers(organisation, 1, origin)
    if Membership.objects.filter(organisation=organisation, user__email=address).exists():
        claimed.give_back()
    count_invitation(organisation, address)
    credential: object = ""
    is_mailed = True
    with transaction.atomic():
        user = _find(address)
        if user is None:
            user = create_user(
                organisation, email=email, name=name, role=role, origin=origin, maker=maker
            )
            _send_link(user, organisation, origin)
        elif Membership.objects.filter(organisation=organisation, user=user).exists():
            is_mailed = _promote(organisation, user, role, origin, maker)
        else:
            credential = _invite(organisation, user, address, role, origin, maker).pk
    record(
        AuthEventKind.MEMBER_INVITED,
        origin,
        about=Subject(SubjectKind.ADDRESS, "", address),
        by=by,
        organisation=organisation,
        email=address,
        credential=credential,
        reason=AuditReason.ADMINISTRATOR_INVITED,
    )
    return is_mailed


def _find(address: str) -> User | None:
    """The user with the address, locked."""
    found = User.objects.find_by_email(address)
    if found is None:
        return None
    user = locked(found)
    if user.email != address:
        raise NotFoundError("This address has changed in the meantime. Try again.")
    return user


def _promote(
    organisation: Organisation, user: User, role: str, origin: Origin, maker: Maker
) -> bool:
    """Gives a member the role; false if they need no link."""
    if not user.belongs_to(organisation):
        raise _refusal(
            "This member belongs to another organisation. You can change the role under Members. "
            "If they have no login to this admin yet, remove them there and invite them here again."
        )
    if not user.is_active:
        raise _refusal("This user is inactive. Activate the user first.")
    change_role(organisation, user, role, origin=origin, maker=maker)
    if user.is_staff and user.has_usable_password():
        return False
    _send_link(user, organisation, origin)
    return True


def _invite(
    organisation: Organisation,
    user: User,
    address: str,
    role: str,
    origin: Origin,
    maker: Maker,
) -> Invitation:
    """Makes or renews the invitation. One of a superuser can never be accepted."""
    earlier = Invitation.objects.of_organisation(organisation).filter(user=user)
    maker.changes_role(*earlier.order_by().values_list("role", flat=True))
    invitation, _ = Invitation.objects.update_or_create(
        organisation=organisation,
        user=user,
        defaults={
            "email": address,
            "role": role,
            "offers_admin_login": True,
            "expires_at": timezone.now() + settings.INVITATION_LIFETIME,
        },
    )
    send_invitation.enqueue(str(invitation.pk), request_id=origin.request_id)
    return invitation


def _send_link(user: User, organisation: Organisation, origin: Origin) -> None:
    send_password_link.enqueue(
        str(user.pk), str(organisation.pk), user.email, request_id=origin.request_id
    )


def _refusal(text: str) -> ValidationError:
    return ValidationError({"email": ValidationError(text, code="member")})
