import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.unlocking import unlock_user
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_organisation, find
from accounts.models import User
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, id: str) -> Member:
    organisation, user = caller_organisation(info), find(info, User, id)
    with domain_errors():
        user = unlock_user(organisation, user, origin=origin_of(info.context.request))
    return member_of(organisation, user)


field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Ends the stop that too many wrong PINs put on a user. FORBIDDEN unless home asks.",
    args={"id": graphene.ID(required=True, description="The user's id.")},
    resolver=resolve,
)
