from datetime import datetime

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.connection import connection_of
from accounts.graphql.scope import caller_organisation
from accounts.models import ApiKey, AuthEvent, DeviceToken, Organisation, Role, User


class RoleEnum(graphene.Enum):
    """A user's place in the organisation."""

    class Meta:
        name = "Role"

    Member = "member"
    Administrator = "administrator"

    @property
    def description(self) -> str:
        return {
            "member": "Logs in by PIN.",
            "administrator": "Also manages the organisation in the admin.",
        }[self.value]


class OrganisationType(DjangoObjectType):
    """The tenant that the API key belongs to."""

    class Meta:
        name = "Organisation"
        model = Organisation
        skip_registry = True
        fields = ("name", "is_active", "created_at")

    id = graphene.ID(required=True, description="The organisation's id.")


class MemberType(DjangoObjectType):
    """A user of the organisation.

    Of one who is a member of others too, nothing of the profile but the e-mail is shown: `name`
    is empty, `phone` and `createdAt` are null.
    """

    class Meta:
        name = "User"
        model = User
        skip_registry = True
        fields = ("is_active",)

    id = graphene.ID(required=True, description="The user's id.")
    created_at = graphene.DateTime(description="When the user was made; null for a shared one.")
    email = graphene.String(required=True, description="The login name, in canonical form.")
    name = graphene.String(required=True, description="Empty for a shared user.")
    phone = graphene.String(description="In E.164 form; null for a shared user.")
    role = graphene.Field(graphene.NonNull(RoleEnum), description="The place in this organisation.")
    is_shared = graphene.Boolean(
        required=True,
        description="Whether others have a say too: then this organisation may not change it.",
    )

    @staticmethod
    def resolve_name(user: User, info: GraphQLResolveInfo) -> str:
        return user.name if _is_own(user, info) else ""

    @staticmethod
    def resolve_created_at(user: User, info: GraphQLResolveInfo) -> datetime | None:
        return user.created_at if _is_own(user, info) else None

    @staticmethod
    def resolve_phone(user: User, info: GraphQLResolveInfo) -> str | None:
        return (user.phone or None) if _is_own(user, info) else None

    @staticmethod
    def resolve_role(user: User, info: GraphQLResolveInfo) -> str:
        organisation = caller_organisation(info)
        memberships = user.memberships.all()
        roles = [str(m.role) for m in memberships if m.organisation_id == organisation.pk]
        return roles[0] if roles else Role.MEMBER.value

    @staticmethod
    def resolve_is_shared(user: User, info: GraphQLResolveInfo) -> bool:
        return not _is_own(user, info)


def _is_own(user: User, info: GraphQLResolveInfo) -> bool:
    return user.belongs_only_to(caller_organisation(info))


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
    def resolve_user(device_token: DeviceToken, info: GraphQLResolveInfo) -> User:
        return device_token.user


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
