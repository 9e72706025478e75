from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.add_member import add_member
from accounts.graphql.domain_errors import domain_errors
from accounts.graphql.enums import enum_value
from accounts.graphql.programs.types import MemberType, RoleEnum
from accounts.graphql.scope import caller_organisation
from accounts.models import User
from config.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, email: str, role: Enum | None = None) -> User:
    with domain_errors():
        return add_member(
            caller_organisation(info),
            email=email,
            role=enum_value(role) or "",
            origin=origin_of(info.context.request),
        )


field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Makes an existing user a member. Shows nothing of the profile but the e-mail.",
    args={
        "email": graphene.String(required=True, description="The user's login name."),
        "role": RoleEnum(
            default_value=RoleEnum.Member, description="The place in the organisation."
        ),
    },
    resolver=resolve,
)
