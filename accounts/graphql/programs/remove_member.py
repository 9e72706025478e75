import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.organisations import remove_member
from accounts.graphql.scope import caller_organisation, find_known_user
from accounts.models import User
from core.graphql.problem import GraphQLProblem
from core.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, user: str) -> bool:
    known: User = find_known_user(info, user)
    if not remove_member(caller_organisation(info), known, origin=origin_of(info.context.request)):
        raise GraphQLProblem("NOT_FOUND", "There is no such object.")
    return True


field = graphene.Boolean(
    required=True,
    description=(
        "Ends a user's membership in the organisation, or an open invitation; the user stays. "
        "One who leaves home belongs to no organisation from then on."
    ),
    args={
        "user": graphene.ID(required=True, description="The user's id."),
    },
    resolver=resolve,
)
