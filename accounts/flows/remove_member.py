from django.db import transaction

from accounts.audit import record
from accounts.flows.add_member import record_about_invitation
from accounts.flows.change_profile import held
from accounts.models import AuthEventKind, Invitation, Membership, Organisation, User
from config.http.origin import NOWHERE, Origin


def remove_member(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> bool:
    """Ends the membership or the open invitation; whether there was one.

    The user, their devices, sessions and other memberships stay. A user who leaves home is their
    own from then on: nobody who adds them later may change their profile.
    """
    with transaction.atomic():
        user = held(user)
        is_removed = _end_membership(organisation, user)
        invitation = _end_invitation(organisation, user)
    if is_removed:
        record(AuthEventKind.MEMBER_REMOVED, origin, user=user, organisation=organisation)
    if invitation is not None:
        record_about_invitation(AuthEventKind.INVITATION_WITHDRAWN, origin, invitation)
    return is_removed or invitation is not None


def _end_membership(organisation: Organisation, user: User) -> bool:
    memberships = Membership.objects.filter(organisation=organisation, user=user)
    deleted, _ = memberships.delete()
    if deleted and user.home_id == organisation.pk:
        user.home = None
        user.save(update_fields=["home"])
    return deleted == 1


def _end_invitation(organisation: Organisation, user: User) -> Invitation | None:
    invitations = Invitation.objects.of_organisation(organisation).filter(user=user)
    invitation = invitations.select_related("organisation").first()
    deleted, _ = invitations.delete()
    return invitation if deleted else None
