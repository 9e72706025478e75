import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.deactivate_user import deactivate_user
from accounts.graphql.domain_errors import domain_errors
from accounts.graphql.programs.types import MemberType
from accounts.graphql.scope import caller_organisation, find
from accounts.models import User
from config.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, id: str) -> User:
    user = find(info, User, id)
    with domain_errors():
        return deactivate_user(
            caller_organisation(info), user, origin=origin_of(info.context.request)
        )


field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Logs a user out everywhere and refuses new logins. FORBIDDEN for a shared user.",
    args={
        "id": graphene.ID(required=True, description="The user's id."),
    },
    resolver=resolve,
)
