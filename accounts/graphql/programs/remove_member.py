import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.remove_member import remove_member
from accounts.graphql.scope import caller_organisation, find
from accounts.models import User
from config.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, user: str) -> bool:
    return remove_member(
        caller_organisation(info), find(info, User, user), origin=origin_of(info.context.request)
    )


field = graphene.Boolean(
    required=True,
    description="Ends a user's membership in the organisation; the user stays.",
    args={
        "user": graphene.ID(required=True, description="The user's id."),
    },
    resolver=resolve,
)
