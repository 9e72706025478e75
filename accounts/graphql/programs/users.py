"""An organisation's users and members, for /admin/graphql."""

from contextlib import nullcontext
from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.organisations import add_member, remove_member
from accounts.flows.revoke_device import revoke_device
from accounts.flows.unlocking import unlock_user
from accounts.flows.users import create_user, deactivate_user, require_home, update_user
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_maker, caller_organisation, find, find_known_user
from accounts.graphql.shared import RoleEnum, enum_value
from accounts.models import DeviceToken, User
from accounts.rate_limits.addresses import counted_answer
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import caller_origin


@mutation(
    MemberType,
    "Creates a user as a member of the organisation. For a known e-mail use addMember.",
    email=graphene.String(required=True, description="The login name."),
    name=graphene.String(description="The user's name."),
    phone=graphene.String(description="For codes by SMS, with country code."),
    role=RoleEnum(default_value=RoleEnum.Member, description="The role in the organisation."),
)
def create_user_field(
    info: GraphQLResolveInfo,
    email: str,
    name: str | None = None,
    phone: str | None = None,
    role: Enum | None = None,
) -> Member:
    organisation, origin = caller_organisation(info), caller_origin(info)
    with counted_answer(organisation, origin):
        user = create_user(
            organisation,
            email=email,
            name=name or "",
            phone=phone or "",
            role=enum_value(role) or "",
            origin=origin,
            maker=caller_maker(info),
        )
    return member_of(organisation, user)


@mutation(
    MemberType,
    "Changes the given fields of a user. Every organisation sets its own role. Only the "
    "user's home changes name and isActive, and e-mail and phone only while the user is a "
    "member of no other organisation and has no access to the admin. Otherwise FORBIDDEN. A "
    "change of e-mail or phone is told to the former e-mail, and to a new one. FORBIDDEN, "
    "but for the name, for a user with more scopes than the caller's key; it takes All where "
    "the user has a role in another organisation.",
    id=graphene.ID(required=True, description="The user's id."),
    email=graphene.String(description="The new login name."),
    name=graphene.String(description="The user's name."),
    phone=graphene.String(description="With country code; empty for none."),
    is_active=graphene.Boolean(description="False logs the user out everywhere."),
    role=RoleEnum(description="The role in the organisation."),
)
def update_user_field(
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
    origin = caller_origin(info)
    answer = nullcontext() if email is None else counted_answer(organisation, origin)
    with answer:
        user = update_user(
            organisation,
            user,
            role=enum_value(role),
            origin=origin,
            maker=caller_maker(info),
            **profile,
        )
    return member_of(organisation, user)


@mutation(
    MemberType,
    "Logs a user out everywhere and refuses new logins. FORBIDDEN except for home, and for a user "
    "with more scopes than the caller's key.",
    id=graphene.ID(required=True, description="The user's id."),
)
def deactivate_user_field(info: GraphQLResolveInfo, id: str) -> Member:
    organisation, user = caller_organisation(info), find(info, User, id)
    user = deactivate_user(organisation, user, origin=caller_origin(info), maker=caller_maker(info))
    return member_of(organisation, user)


@mutation(
    MemberType,
    "Unlocks a user after too many wrong PINs. FORBIDDEN except for home.",
    id=graphene.ID(required=True, description="The user's id."),
)
def unlock_user_field(info: GraphQLResolveInfo, id: str) -> Member:
    organisation, user = caller_organisation(info), find(info, User, id)
    user = unlock_user(organisation, user, origin=caller_origin(info), maker=caller_maker(info))
    return member_of(organisation, user)


@mutation(
    graphene.Boolean,
    "Revokes a device's credential and ends its sessions. FORBIDDEN except for home.",
    token_id=graphene.ID(required=True, description="The id of the device's token."),
)
def revoke_device_field(info: GraphQLResolveInfo, token_id: str) -> bool:
    device_token = find(info, DeviceToken, token_id)
    require_home(caller_organisation(info), device_token.user)
    caller_maker(info).touches(device_token.user, caller_organisation(info))
    revoke_device(device_token, origin=caller_origin(info))
    return True


@mutation(
    MemberType,
    "Invites an existing user by e-mail, who becomes a member on acceptance. Gives an existing "
    "member the role.",
    email=graphene.String(required=True, description="The user's login name."),
    role=RoleEnum(default_value=RoleEnum.Member, description="The role in the organisation."),
)
def add_member_field(info: GraphQLResolveInfo, email: str, role: Enum | None = None) -> Member:
    organisation, origin = caller_organisation(info), caller_origin(info)
    with counted_answer(organisation, origin):
        added = add_member(
            organisation,
            email=email,
            role=enum_value(role) or "",
            origin=origin,
            maker=caller_maker(info),
        )
    return member_of(organisation, added.user)


@mutation(
    graphene.Boolean,
    "Ends a user's membership in the organisation, or an open invitation; the user stays. "
    "A user who leaves home has no home from then on.",
    user=graphene.ID(required=True, description="The user's id."),
)
def remove_member_field(info: GraphQLResolveInfo, user: str) -> bool:
    known: User = find_known_user(info, user)
    is_removed = remove_member(
        caller_organisation(info), known, origin=caller_origin(info), maker=caller_maker(info)
    )
    if not is_removed:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return True
