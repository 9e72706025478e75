"""Mutations of users and their devices."""

from contextlib import nullcontext
from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.revoke_device import revoke_device
from accounts.flows.unlocking import unlock_user
from accounts.flows.users import create_user, deactivate_user, require_home, update_user
from accounts.graphql.enums import RoleEnum, enum_value
from accounts.graphql.programs.types import Member, MemberType, member_of
from accounts.graphql.scope import caller_organisation, find
from accounts.models import DeviceToken, User
from accounts.rate_limits.addresses import counted_answer
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve_create_user(
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


create_user_field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Creates a user as a member of the organisation. For a known e-mail use addMember.",
    args={
        "email": graphene.String(required=True, description="The login name."),
        "name": graphene.String(description="The user's name."),
        "phone": graphene.String(description="For codes by SMS, with country code."),
        "role": RoleEnum(
            default_value=RoleEnum.Member, description="The role in the organisation."
        ),
    },
    resolver=resolve_create_user,
)


def resolve_update_user(
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


update_user_field = graphene.Field(
    graphene.NonNull(MemberType),
    description=(
        "Changes the given fields of a user. Every organisation sets its own role. Only the "
        "user's home changes name and isActive, and e-mail and phone only while the user is a "
        "member of no other organisation and has no access to the admin. Otherwise FORBIDDEN. A "
        "change of e-mail or phone is told to the former e-mail."
    ),
    args={
        "id": graphene.ID(required=True, description="The user's id."),
        "email": graphene.String(description="The new login name."),
        "name": graphene.String(description="The user's name."),
        "phone": graphene.String(description="With country code; empty for none."),
        "is_active": graphene.Boolean(description="False logs the user out everywhere."),
        "role": RoleEnum(description="The role in the organisation."),
    },
    resolver=resolve_update_user,
)


def resolve_deactivate_user(root: None, info: GraphQLResolveInfo, id: str) -> Member:
    organisation, user = caller_organisation(info), find(info, User, id)
    with domain_errors():
        user = deactivate_user(organisation, user, origin=origin_of(info.context.request))
    return member_of(organisation, user)


deactivate_user_field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Logs a user out everywhere and refuses new logins. FORBIDDEN except for home.",
    args={
        "id": graphene.ID(required=True, description="The user's id."),
    },
    resolver=resolve_deactivate_user,
)


def resolve_unlock_user(root: None, info: GraphQLResolveInfo, id: str) -> Member:
    organisation, user = caller_organisation(info), find(info, User, id)
    with domain_errors():
        user = unlock_user(organisation, user, origin=origin_of(info.context.request))
    return member_of(organisation, user)


unlock_user_field = graphene.Field(
    graphene.NonNull(MemberType),
    description="Unlocks a user after too many wrong PINs. FORBIDDEN except for home.",
    args={"id": graphene.ID(required=True, description="The user's id.")},
    resolver=resolve_unlock_user,
)


def resolve_revoke_device(root: None, info: GraphQLResolveInfo, token_id: str) -> bool:
    device_token = find(info, DeviceToken, token_id)
    with domain_errors():
        require_home(caller_organisation(info), device_token.user)
    revoke_device(device_token, origin=origin_of(info.context.request))
    return True


revoke_device_field = graphene.Boolean(
    required=True,
    description="Revokes a device's credential and ends its sessions. FORBIDDEN except for home.",
    args={
        "token_id": graphene.ID(required=True, description="The id of the device's token."),
    },
    resolver=resolve_revoke_device,
)
