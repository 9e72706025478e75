"""The invited user's answer. Until it is given, an invitation gives and takes nothing."""

from uuid import UUID

from django.db import transaction

from accounts.audit import record_about
from accounts.flows.add_member import record_about_invitation
from accounts.flows.change_profile import held
from accounts.models import AuthEventKind, Invitation, Membership, User
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin


def accept_invitation(user: User, invitation_id: UUID, *, origin: Origin = NOWHERE) -> None:
    """Makes the user a member, with the role of the invitation.

    From then on home may no longer change what the user logs in with. Raises ``NotFoundError``
    for an invitation that is not the user's, has ended, or whose organisation is inactive.
    """
    with transaction.atomic():
        invitation = _take(user, invitation_id)
        Membership.objects.create(
            organisation=invitation.organisation, user=user, role=invitation.role
        )
    _tell_inviter(AuthEventKind.INVITATION_ACCEPTED, invitation)
    record_about(AuthEventKind.INVITATION_ACCEPTED, origin, user)


def decline_invitation(user: User, invitation_id: UUID) -> None:
    """Ends the invitation. Raises ``NotFoundError`` like ``accept_invitation``."""
    with transaction.atomic():
        invitation = _take(user, invitation_id)
    _tell_inviter(AuthEventKind.INVITATION_DECLINED, invitation)


def _take(user: User, invitation_id: UUID) -> Invitation:
    """The invitation, deleted: of several answers at once, one gets it.

    Holds the user's row, as changes of the profile do: none of these runs while the user becomes
    a member elsewhere.
    """
    held(user)
    open_ones = user.invitations.answerable().select_related("organisation")
    invitation = open_ones.filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFoundError("There is no such invitation.")
    deleted, _ = Invitation.objects.open().filter(pk=invitation_id).delete()
    if deleted != 1:
        raise NotFoundError("There is no such invitation.")
    return invitation


def _tell_inviter(kind: AuthEventKind, invitation: Invitation) -> None:
    """Without the origin: where the user is, is not the inviting organisation's to know."""
    record_about_invitation(kind, NOWHERE, invitation)
