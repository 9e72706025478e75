from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import graphene
from django.db.models import QuerySet
from django.utils import timezone
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation
from accounts.graphql.shared import RoleEnum, ScopeEnum, membership_type
from accounts.models import (
    HIDDEN_ACTORS,
    ApiKey,
    AuthEvent,
    DeviceToken,
    Invitation,
    Membership,
    Organisation,
    User,
)
from core.graphql.connection import Page, connection_of
from core.graphql.problem import GraphQLCode, GraphQLProblem

_MAX_KEYS_CREATED = 100


class OrganisationType(DjangoObjectType):
    """The tenant that the API key belongs to."""

    class Meta:
        name = "Organisation"
        model = Organisation
        skip_registry = True
        fields = ("name", "is_active", "created_at")

    id = graphene.ID(required=True, description="The organisation's id.")


MembershipType = membership_type(OrganisationType)


@dataclass(frozen=True, slots=True)
class Member:
    """A user as the organisation sees them: the fields of ``MemberType``."""

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
    """The user as the organisation sees them: home sees the profile, others only the e-mail.

    NOT_FOUND for a user who is no longer a member or invited.
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
    raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")


class MemberPage:
    """A page of users as the organisation sees them."""

    def __init__(self, organisation: Organisation, page: Page) -> None:
        self._organisation = organisation
        self._page = page

    @property
    def nodes(self) -> list[Member]:
        return [member_of(self._organisation, cast("User", row)) for row in self._page.nodes]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)


class MemberType(graphene.ObjectType):
    """A member or invited user of the organisation.

    Only the user's home, the organisation that created the user, sees the profile. Others see the
    e-mail and their own role: `name` is empty, `phone` and `createdAt` are null, and `isActive`
    is true.
    """

    class Meta:
        name = "User"

    id = graphene.ID(required=True, description="The user's id.")
    created_at = graphene.DateTime(description="When the user was created. Shown to home only.")
    email = graphene.String(
        required=True,
        description="The login name in canonical form; for an invited user, the invited address.",
    )
    name = graphene.String(required=True, description="The user's name. Shown to home only.")
    phone = graphene.String(
        description="The phone number in E.164 form, if any. Shown to home only."
    )
    is_active = graphene.Boolean(
        required=True,
        description="If false, every login and session is refused. Shown to home only.",
    )
    role = graphene.Field(graphene.NonNull(RoleEnum), description="The role in this organisation.")
    is_shared = graphene.Boolean(
        required=True,
        description=(
            "Whether the user also belongs to another organisation. Then this one cannot change "
            "e-mail and phone, and unless it is the user's home, only the role."
        ),
    )
    membership = graphene.Field(
        graphene.NonNull(MembershipType), description="The membership in this organisation."
    )


class ApiKeyType(DjangoObjectType):
    """A program's credential. Its secret was shown once and is not stored."""

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
        description="Networks it may be used from. Empty for any.",
    )
    scopes = graphene.List(
        graphene.NonNull(ScopeEnum), required=True, description="What it may do."
    )
    is_unused = graphene.Boolean(
        required=True,
        description="Whether the key is valid but has not opened a session for 90 days.",
    )
    created_with = graphene.ID(description="The id of the key that created it; null for none.")
    keys_created = graphene.List(
        graphene.NonNull(lambda: ApiKeyType),
        required=True,
        description=(
            f"The newest {_MAX_KEYS_CREATED} keys that were created with it, including revoked "
            "ones. They are revoked with it if a person approved it as a program's login."
        ),
    )

    @staticmethod
    def resolve_created_with(api_key: ApiKey, info: GraphQLResolveInfo) -> UUID | None:
        return api_key.created_with_id

    @staticmethod
    def resolve_keys_created(api_key: ApiKey, info: GraphQLResolveInfo) -> QuerySet[ApiKey]:
        return api_key.keys_created.order_by("-created_at", "-id")[:_MAX_KEYS_CREATED]


class IssuedApiKey(graphene.ObjectType):
    """A new or rotated key with its secret, which is shown once."""

    api_key = graphene.Field(graphene.NonNull(ApiKeyType), description="The key.")
    secret = graphene.String(
        required=True, description="The password of POST /session. It is not stored: keep it."
    )


class MemberDeviceType(DjangoObjectType):
    """A device of a user of the organisation."""

    class Meta:
        name = "Device"
        model = DeviceToken
        skip_registry = True
        fields = ("label", "created_at", "last_used_at")

    token_id = graphene.ID(required=True, description="The id of the device's token.")
    device = graphene.ID(
        required=True, description="The UUID that the device generated for itself."
    )
    user = graphene.Field(graphene.NonNull(MemberType), description="The device's owner.")

    @staticmethod
    def resolve_token_id(device_token: DeviceToken, info: GraphQLResolveInfo) -> str:
        return str(device_token.pk)

    @staticmethod
    def resolve_user(device_token: DeviceToken, info: GraphQLResolveInfo) -> Member:
        return member_of(caller_organisation(info), device_token.user)


class AuthEventType(DjangoObjectType):
    """An event in the audit log of the organisation."""

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
    kind = graphene.String(required=True, description="What happened, such as session.opened.")
    actor_kind = graphene.String(
        description="Who acted: user, api-key, command, system (Moonhook itself), stranger (not "
        "logged in), outsider (a member of another organisation) or operator (of Moonhook). Null "
        "if not recorded."
    )
    actor_id = graphene.String(
        description="Id of the user, public id of the key, or name of the command. Null for "
        "outsiders and operators."
    )
    actor_label = graphene.String(description="The actor's e-mail or name at that time.")
    subject_kind = graphene.String(
        description="What the event is about: user, address, organisation, invitation, api-key, "
        "device, session, script, hook or secret. Null if not recorded."
    )
    subject_id = graphene.String(description="Id of what the event is about.")
    subject_label = graphene.String(description="Its e-mail or name at that time.")

    @staticmethod
    def resolve_actor_id(event: AuthEvent, info: GraphQLResolveInfo) -> str | None:
        return None if event.actor_kind in HIDDEN_ACTORS else event.actor_id


AuthEventConnection = connection_of(AuthEventType)
MemberConnection = connection_of(MemberType)
ApiKeyConnection = connection_of(ApiKeyType)
DeviceConnection = connection_of(MemberDeviceType)
