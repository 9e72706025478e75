from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import graphene
from django.utils import timezone
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import RoleEnum
from accounts.graphql.memberships import membership_type
from accounts.graphql.scope import caller_organisation
from accounts.models import (
    ApiKey,
    AuthEvent,
    DeviceToken,
    Invitation,
    Membership,
    Organisation,
    User,
)
from core.graphql.connection import Page, connection_of
from core.graphql.problem import GraphQLProblem


class OrganisationType(DjangoObjectType):
    """The tenant that the API key belongs to."""

    class Meta:
        name = "Organisation"
        model = Organisation
        skip_registry = True
        fields = ("name", "is_active", "created_at")

    id = graphene.ID(required=True, description="The organisation's id.")
    run_bytes_used = graphene.Float(
        required=True,
        description="What payloads, replies, headers and logs of its runs take, in whole bytes; "
        "some seconds old.",
    )
    run_bytes_quota = graphene.Float(
        description="How many bytes they may take: beyond that the oldest are removed. Null: no "
        "quota.",
    )

    @staticmethod
    def resolve_run_bytes_quota(organisation: Organisation, info: GraphQLResolveInfo) -> int | None:
        return organisation.run_bytes_limit


MembershipType = membership_type(OrganisationType)


@dataclass(frozen=True, slots=True)
class Member:
    """A user as an organisation sees them: what ``MemberType`` shows, and nothing else of them."""

    id: UUID
    email: str
    membership: Membership | Invitation
    name: str = ""
    phone: str | None = None
    created_at: datetime | None = None
    is_active: bool = True
    is_shared: bool = True

    @property
    def role(self) -> str:
        return self.membership.role


def member_of(organisation: Organisation, user: User) -> Member:
    """The user as the organisation sees them: home sees the profile, another the e-mail.

    NOT_FOUND for a user who is neither a member nor invited any more.
    """
    places = (row for row in user.memberships.all() if row.organisation_id == organisation.pk)
    membership = next(places, None)
    if membership is None:
        return _invited(organisation, user)
    membership.organisation = organisation
    if not user.belongs_to(organisation):
        return Member(user.pk, user.email, membership)
    return Member(
        user.pk,
        user.email,
        membership,
        name=user.name,
        phone=user.phone or None,
        created_at=user.created_at,
        is_active=user.is_active,
        is_shared=not user.belongs_only_to(organisation),
    )


def _invited(organisation: Organisation, user: User) -> Member:
    now = timezone.now()
    for invitation in user.invitations.all():
        if invitation.organisation_id == organisation.pk and invitation.expires_at > now:
            invitation.organisation = organisation
            return Member(user.pk, invitation.email, invitation)
    raise GraphQLProblem("NOT_FOUND", "There is no such object.")


class MemberPage:
    """A page of users, whose nodes are what the organisation sees of them."""

    def __init__(self, organisation: Organisation, page: Page) -> None:
        self._organisation = organisation
        self._page = page

    @property
    def nodes(self) -> list[Member]:
        return [member_of(self._organisation, cast("User", row)) for row in self._page.nodes]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)


class MemberType(graphene.ObjectType):
    """A user of the organisation, or one that it has invited.

    Only the organisation that made the user, the user's home, sees the profile. Others see the
    e-mail and their own role: `name` is empty, `phone` and `createdAt` are null, and `isActive`
    is true.
    """

    class Meta:
        name = "User"

    id = graphene.ID(required=True, description="The user's id.")
    created_at = graphene.DateTime(description="When the user was made. Shown to home only.")
    email = graphene.String(
        required=True,
        description="The login name, in canonical form; of an invited user the address invited.",
    )
    name = graphene.String(required=True, description="What to call the user. Shown to home only.")
    phone = graphene.String(description="In E.164 form, if there is one. Shown to home only.")
    is_active = graphene.Boolean(
        required=True,
        description="False: every login and session is refused. Shown to home only.",
    )
    role = graphene.Field(graphene.NonNull(RoleEnum), description="The place in this organisation.")
    is_shared = graphene.Boolean(
        required=True,
        description=(
            "Whether others have a say too: then this organisation may not change e-mail and "
            "phone, and unless it is the user's home nothing but the role."
        ),
    )
    membership = graphene.Field(
        graphene.NonNull(MembershipType), description="The place in this organisation, in full."
    )


class ApiKeyType(DjangoObjectType):
    """A program's credential. Its secret was shown once and is not kept."""

    class Meta:
        name = "ApiKey"
        model = ApiKey
        skip_registry = True
        fields = (
            "key",
            "name",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
            "last_used_from",
            "previous_valid_until",
        )

    id = graphene.ID(required=True, description="The key's id.")
    allowed_networks = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="Where it may be used from; empty: anywhere.",
    )
    is_unused = graphene.Boolean(
        required=True,
        description="Whether it is good but opened no session for 90 days: better revoke it.",
    )


class IssuedApiKey(graphene.ObjectType):
    """A key just made, with its secret: the only time it is shown."""

    api_key = graphene.Field(graphene.NonNull(ApiKeyType), description="The key.")
    secret = graphene.String(
        required=True, description="POST /session takes it as password. Keep it: it is not."
    )


class MemberDeviceType(DjangoObjectType):
    """A device of a user of the organisation."""

    class Meta:
        name = "Device"
        model = DeviceToken
        skip_registry = True
        fields = ("label", "created_at", "last_used_at")

    token_id = graphene.ID(required=True, description="The id of the device's token.")
    device = graphene.ID(required=True, description="The id the device gave itself: a UUID.")
    user = graphene.Field(graphene.NonNull(MemberType), description="Whose device it is.")

    @staticmethod
    def resolve_token_id(device_token: DeviceToken, info: GraphQLResolveInfo) -> str:
        return str(device_token.pk)

    @staticmethod
    def resolve_user(device_token: DeviceToken, info: GraphQLResolveInfo) -> Member:
        return member_of(caller_organisation(info), device_token.user)


class AuthEventType(DjangoObjectType):
    """Something that happened to credentials of the organisation or of its users."""

    class Meta:
        name = "AuthEvent"
        model = AuthEvent
        skip_registry = True
        fields = (
            "at",
            "reason",
            "email",
            "credential",
            "client_address",
            "user_agent",
            "request_id",
        )

    id = graphene.ID(required=True, description="The event's id.")
    kind = graphene.String(required=True, description="What happened: session.opened, …")


AuthEventConnection = connection_of(AuthEventType)
MemberConnection = connection_of(MemberType)
ApiKeyConnection = connection_of(ApiKeyType)
DeviceConnection = connection_of(MemberDeviceType)
