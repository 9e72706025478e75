from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.organisations import add_member
from accounts.graphql.enums import RoleEnum, enum_value
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_organisation
from accounts.rate_limits.addresses import counted_answer
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, email: str, role: Enum | None = None) -> Member:
    organisation, origin = caller_organisation(info), origin_of(info.context.request)
    with domain_errors(), counted_answer(organisation, origin):
        added = add_member(
            organisation,
            email=email,
            role=enum_value(role) or "",
            origin=origin,
        )
    return member_of(organisation, added.user)


field = graphene.Field(
    graphene.NonNull(MemberType),
    description=(
        "Invites an existing user, who becomes a member by accepting it; until then it gives and "
        "takes nothing. A mail tells them. Gives one who is a member already the role."
    ),
    args={
        "email": graphene.String(required=True, description="The user's login name."),
        "role": RoleEnum(
            default_value=RoleEnum.Member, description="The place in the organisation."
        ),
    },
    resolver=resolve,
)
