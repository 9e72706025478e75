from django.db import transaction

from accounts.audit import record
from accounts.flows.add_member import record_about_invitation
from accounts.flows.change_profile import held
from accounts.models import AuthEventKind, Invitation, Membership, Organisation, User
from core.http.origin import NOWHERE, Origin


def remove_member(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> bool:
    """Ends the membership or the open invitation; whether there was one.

    The user, their devices, sessions and other memberships stay; sessions that ended with the
    organisation stay ended. A user who leaves home is their own from then on: nobody who adds them
    later may change their profile.
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
    if deleted:
        _keep_ended_sessions_ended(organisation, user)
    return deleted == 1


def _keep_ended_sessions_ended(organisation: Organisation, user: User) -> None:
    """Ends with the user what had ended with the organisation, now that the user has left it.

    A user without any organisation has sessions of their own, so that those from before it was
    switched off would be good again.
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
