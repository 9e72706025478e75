"""An organisation's members and invited users, in one list."""

from typing import Any

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce

from accounts.models import Invitation, Membership, Organisation, User


def known_users(
    organisation: Organisation, *, email: str | None = None, is_accepted: bool | None = None
) -> QuerySet[Any]:
    """The users, each annotated with ``since``: the start of the membership or invitation.

    ``email`` is canonical. It finds an invited user only by the invited address, because the
    organisation does not learn of a later one.
    """
    memberships = Membership.objects.filter(organisation=organisation).order_by()
    invitations = Invitation.objects.of_organisation(organisation).order_by()
    members = memberships if email is None else memberships.filter(user__email=email)
    invited = invitations if email is None else invitations.filter(email=email)
    chosen = {
        None: members.values("user").union(invited.values("user"), all=True),
        True: members.values("user"),
        False: invited.values("user"),
    }
    return (
        User.objects.filter(pk__in=chosen[is_accepted])
        .annotate(since=Coalesce(_created_at(memberships), _created_at(invitations)))
        .prefetch_related("memberships", Prefetch("invitations", invitations))
    )


def _created_at(places: QuerySet[Membership] | QuerySet[Invitation]) -> Subquery:
    return Subquery(places.filter(user=OuterRef("pk")).values("created_at")[:1])
