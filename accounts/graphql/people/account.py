"""Queries and mutations of a person about their own account."""

from typing import Protocol

import graphene
from django.db.models import QuerySet
from graphql import GraphQLResolveInfo

from accounts.flows.organisations import accept_invitation, decline_invitation
from accounts.flows.revoke_device import revoke_device
from accounts.graphql.people.types import DeviceType, InvitationType, UserType
from accounts.models import DeviceToken, Invitation, User
from core.graphql.resolving import domain_errors, one
from core.http.origin import origin_of


class PersonSession(Protocol):
    """A session that /user/graphql accepts."""

    user: User


def caller(info: GraphQLResolveInfo) -> User:
    session: PersonSession = info.context.session
    return session.user


def devices_of_caller(info: GraphQLResolveInfo) -> QuerySet[DeviceToken]:
    return caller(info).device_tokens.filter(revoked_at__isnull=True)


def invitations_of_caller(info: GraphQLResolveInfo) -> QuerySet[Invitation]:
    return caller(info).invitations.answerable().select_related("organisation")


class AccountsQuery(graphene.ObjectType):
    me = graphene.Field(
        graphene.NonNull(UserType),
        description="The user of this session.",
        resolver=lambda root, info: caller(info),
    )
    devices = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(DeviceType))),
        description="The devices that the user is logged in on.",
        resolver=lambda root, info: devices_of_caller(info),
    )
    invitations = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(InvitationType))),
        description="Open invitations of the user, newest first.",
        resolver=lambda root, info: invitations_of_caller(info),
    )


def resolve_accept_invitation(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    invitation = one(invitations_of_caller(info), id)
    with domain_errors():
        accept_invitation(caller(info), invitation.pk, origin=origin_of(info.context.request))
    return True


def resolve_decline_invitation(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    invitation = one(invitations_of_caller(info), id)
    with domain_errors():
        decline_invitation(caller(info), invitation.pk)
    return True


_ARGUMENTS = {"id": graphene.ID(required=True, description="The invitation's id.")}

accept_invitation_field = graphene.Boolean(
    required=True,
    description="Makes the user a member of the organisation. NOT_FOUND for an expired invitation.",
    args=_ARGUMENTS,
    resolver=resolve_accept_invitation,
)
decline_invitation_field = graphene.Boolean(
    required=True,
    description="Declines an invitation. The organisation may invite again.",
    args=_ARGUMENTS,
    resolver=resolve_decline_invitation,
)


def resolve_revoke_device(root: None, info: GraphQLResolveInfo, token_id: str) -> bool:
    revoke_device(one(devices_of_caller(info), token_id), origin=origin_of(info.context.request))
    return True


revoke_device_field = graphene.Boolean(
    required=True,
    description="Revokes a device's credential and ends its sessions immediately.",
    args={
        "token_id": graphene.ID(
            required=True, description="The tokenId of one of the user's devices."
        ),
    },
    resolver=resolve_revoke_device,
)
