"""What a person may ask about themselves."""

from typing import Protocol

import graphene
from django.db.models import QuerySet
from graphql import GraphQLResolveInfo

from accounts.graphql.people.types import DeviceType, InvitationType, UserType
from accounts.models import DeviceToken, Invitation, User


class PersonSession(Protocol):
    """What the door of /user/graphql lets in."""

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
        description="Invitations that wait for the user's answer. Newest first.",
        resolver=lambda root, info: invitations_of_caller(info),
    )
