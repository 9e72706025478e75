"""The GraphQL types of sessions."""

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.programs.types import ApiKeyType, MemberDeviceType
from accounts.models import ApiKey, DeviceToken
from core.graphql.connection import connection_of
from sessions_api.models import Session


class SessionType(DjangoObjectType):
    """An open session."""

    class Meta:
        name = "Session"
        model = Session
        skip_registry = True
        fields = ("created_at", "expires_at", "last_used_at")

    id = graphene.ID(required=True, description="The session's id, which is not its token.")
    credential = graphene.String(required=True, description="`ApiKey` or `Token`.")
    is_current = graphene.Boolean(required=True, description="Whether this request uses it.")

    @staticmethod
    def resolve_is_current(session: Session, info: GraphQLResolveInfo) -> bool:
        return bool(info.context.session.pk == session.pk)


class OrganisationSessionType(SessionType):
    """An open session of the organisation's programs or of its own users."""

    class Meta:
        name = "Session"
        model = Session
        skip_registry = True
        fields = ("created_at", "expires_at", "last_used_at", "client_address")

    api_key = graphene.Field(ApiKeyType, description="The API key that opened it, or null.")
    device = graphene.Field(MemberDeviceType, description="The device that opened it, or null.")

    @staticmethod
    def resolve_api_key(session: Session, info: GraphQLResolveInfo) -> ApiKey | None:
        return session.api_key

    @staticmethod
    def resolve_device(session: Session, info: GraphQLResolveInfo) -> DeviceToken | None:
        return session.device_token


SessionConnection = connection_of(OrganisationSessionType)
