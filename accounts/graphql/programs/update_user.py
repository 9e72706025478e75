from contextlib import nullcontext
from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.users import update_user
from accounts.graphql.enums import RoleEnum, enum_value
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_organisation, find
from accounts.models import User
from accounts.rate_limits.addresses import counted_answer
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve(
    root: None,
    info: GraphQLResolveInfo,
    id: str,
    email: str | None = None,
    name: str | None = None,
    phone: str | None = None,
    is_active: bool | None = None,
    role: Enum | None = None,
) -> Member:
    given = {"email": email, "name": name, "phone": phone, "is_active": is_active}
    profile = {field: value for field, value in given.items() if value is not None}
    organisation, user = caller_organisation(info), find(info, User, id)
    origin = origin_of(info.context.request)
    answer = nullcontext() if email is None else counted_answer(organisation, origin)
    with domain_errors(), answer:
        user = update_user(
            organisation,
            user,
            role=enum_value(role),
            origin=origin,
            **profile,
        )
    return member_of(organisation, user)


field = graphene.Field(
    graphene.NonNull(MemberType),
    description=(
        "Changes what is given of a user. The role is each organisation's own; the rest is for "
        "the user's home: name and activity always, e-mail and phone only while the user is a "
        "member of no other organisation. Otherwise FORBIDDEN."
    ),
    args={
        "id": graphene.ID(required=True, description="The user's id."),
        "email": graphene.String(description="The new login name."),
        "name": graphene.String(description="What to call the user."),
        "phone": graphene.String(description="With country code; empty for none."),
        "is_active": graphene.Boolean(description="False logs the user out everywhere."),
        "role": RoleEnum(description="The place in the organisation."),
    },
    resolver=resolve,
)
