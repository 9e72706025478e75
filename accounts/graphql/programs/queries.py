import graphene
from graphql import GraphQLResolveInfo

from accounts.email_address import canonical_email
from accounts.graphql.connection import Page, connection_field, page_of
from accounts.graphql.programs.types import (
    ApiKeyConnection,
    AuthEventConnection,
    DeviceConnection,
    MemberConnection,
    MemberType,
    OrganisationType,
)
from accounts.graphql.scope import caller_organisation, find, scoped
from accounts.models import ApiKey, AuthEvent, DeviceToken, Organisation, User
from accounts.plain_text import storable


class AccountsQuery(graphene.ObjectType):
    organisation = graphene.Field(
        graphene.NonNull(OrganisationType), description="The organisation of the API key."
    )
    users = connection_field(
        MemberConnection,
        "The users of the organisation.",
        email=graphene.String(description="Only the one with this e-mail."),
    )
    user = graphene.Field(
        MemberType,
        description="One user of the organisation.",
        id=graphene.ID(required=True, description="The user's id."),
    )
    api_keys = connection_field(
        ApiKeyConnection, "The API keys of the organisation, revoked ones too."
    )
    auth_events = connection_field(
        AuthEventConnection,
        "What happened to the organisation's credentials.",
        kind=graphene.String(description="Only events of this kind."),
        user=graphene.ID(description="Only those about this user."),
    )
    devices = connection_field(
        DeviceConnection,
        "The devices of the organisation's own users.",
        user=graphene.ID(description="Only those of this user."),
    )

    @staticmethod
    def resolve_organisation(root: None, info: GraphQLResolveInfo) -> Organisation:
        return caller_organisation(info)

    @staticmethod
    def resolve_users(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        email: str | None = None,
    ) -> Page:
        rows = scoped(info, User).prefetch_related("memberships").order_by("-created_at", "-id")
        if email is not None:
            rows = rows.filter(email=canonical_email(email))
        return page_of(rows, first, after)

    @staticmethod
    def resolve_user(root: None, info: GraphQLResolveInfo, id: str) -> User:
        return find(info, User, id)

    @staticmethod
    def resolve_api_keys(
        root: None, info: GraphQLResolveInfo, first: int | None = None, after: str | None = None
    ) -> Page:
        return page_of(scoped(info, ApiKey), first, after)

    @staticmethod
    def resolve_auth_events(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        kind: str | None = None,
        user: str | None = None,
    ) -> Page:
        rows = scoped(info, AuthEvent)
        if kind is not None:
            rows = rows.filter(kind=storable(kind))
        if user is not None:
            rows = rows.filter(user=find(info, User, user))
        return page_of(rows, first, after)

    @staticmethod
    def resolve_devices(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        user: str | None = None,
    ) -> Page:
        rows = (
            scoped(info, DeviceToken).select_related("user").prefetch_related("user__memberships")
        )
        rows = rows.of_own_users(caller_organisation(info))
        if user is not None:
            rows = rows.filter(user=find(info, User, user))
        return page_of(rows, first, after)
