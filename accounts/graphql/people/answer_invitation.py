import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.organisations import accept_invitation, decline_invitation
from accounts.graphql.people.me import caller, invitations_of_caller
from core.graphql.resolving import domain_errors, one
from core.http.origin import origin_of


def resolve_accept(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    invitation = one(invitations_of_caller(info), id)
    with domain_errors():
        accept_invitation(caller(info), invitation.pk, origin=origin_of(info.context.request))
    return True


def resolve_decline(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    invitation = one(invitations_of_caller(info), id)
    with domain_errors():
        decline_invitation(caller(info), invitation.pk)
    return True


_ARGUMENTS = {"id": graphene.ID(required=True, description="The invitation's id.")}

accept_field = graphene.Boolean(
    required=True,
    description="Makes the user a member of the organisation. NOT_FOUND once the invitation ended.",
    args=_ARGUMENTS,
    resolver=resolve_accept,
)
decline_field = graphene.Boolean(
    required=True,
    description="Ends an invitation. The organisation may invite again.",
    args=_ARGUMENTS,
    resolver=resolve_decline,
)
