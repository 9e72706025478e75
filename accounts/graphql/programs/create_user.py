from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.users import create_user
from accounts.graphql.enums import RoleEnum, enum_value
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_organisation
from accounts.rate_limits.addresses import counted_answer
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve(
    root: None,
    info: GraphQLResolveInfo,
    email: str,
    name: str | None = None,
    phone: str | None = None,
    role: Enum | None = None,
) -> Member:
    organisation, origin = caller_organisation(info), origin_of(info.context.request)
    with domain_errors(), counted_answer(organisation, origin):
        user = create_user(
            organisation,
            email=email,
            name=name or "",
            phone=phone or "",
            role=enum_value(role) or "",
            origin=origin,
        )
    return member_of(organisation, user)


field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Makes a user, member of the organisation. A known e-mail: use addMember.",
    args={
        "email": graphene.String(required=True, description="The login name."),
        "name": graphene.String(description="What to call the user."),
        "phone": graphene.String(description="For codes by SMS; with country code."),
        "role": RoleEnum(
            default_value=RoleEnum.Member, description="The place in the organisation."
        ),
    },
    resolver=resolve,
)
