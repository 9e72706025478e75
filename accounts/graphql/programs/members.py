"""Mutations of memberships."""

from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.organisations import add_member, remove_member
from accounts.graphql.enums import RoleEnum, enum_value
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_organisation, find_known_user
from accounts.models import User
from accounts.rate_limits.addresses import counted_answer
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve_add_member(
    root: None, info: GraphQLResolveInfo, email: str, role: Enum | None = None
) -> Member:
    organisation, origin = caller_organisation(info), origin_of(info.context.request)
    with domain_errors(), counted_answer(organisation, origin):
        added = add_member(
            organisation,
            email=email,
            role=enum_value(role) or "",
            origin=origin,
        )
    return member_of(organisation, added.user)


add_member_field = graphene.Field(
    graphene.NonNull(MemberType),
    description=(
        "Invites an existing user by e-mail, who becomes a member on acceptance. Gives an existing "
        "member the role."
    ),
    args={
        "email": graphene.String(required=True, description="The user's login name."),
        "role": RoleEnum(
            default_value=RoleEnum.Member, description="The role in the organisation."
        ),
    },
    resolver=resolve_add_member,
)


def resolve_remove_member(root: None, info: GraphQLResolveInfo, user: str) -> bool:
    known: User = find_known_user(info, user)
    if not remove_member(caller_organisation(info), known, origin=origin_of(info.context.request)):
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return True


remove_member_field = graphene.Boolean(
    required=True,
    description=(
        "Ends a user's membership in the organisation, or an open invitation; the user stays. "
        "A user who leaves home has no home from then on."
    ),
    args={
        "user": graphene.ID(required=True, description="The user's id."),
    },
    resolver=resolve_remove_member,
)
