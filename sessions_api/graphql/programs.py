"""An organisation's sessions, for /admin/graphql."""

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.users import require_home
from accounts.graphql.programs.types import ApiKeyType, MemberDeviceType
from accounts.graphql.scope import caller_maker, caller_organisation, find, scoped
from accounts.models import ApiKey, DeviceToken, User
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.mutation import mutation
from core.graphql.resolving import caller_origin
from sessions_api.flows import end_session
from sessions_api.graphql.people import SessionType
from sessions_api.models import Session


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


class SessionsQuery(graphene.ObjectType):
    sessions = connection_field(
        SessionConnection,
        "Open sessions of the organisation's API keys and own users.",
        user=graphene.ID(description="Only sessions of this user."),
    )

    @staticmethod
    def resolve_sessions(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        user: str | None = None,
    ) -> Page:
        organisation = caller_organisation(info)
        rows = scoped(info, Session).with_owners()
        if user is None:
            return page_of(info, rows.of_own(organisation), first, after)
        member = find(info, User, user)
        is_own = member.belongs_to(organisation)
        return page_of(info, rows.of_user(member) if is_own else rows.none(), first, after)


@mutation(
    graphene.Boolean,
    "Ends a session immediately. FORBIDDEN for a user of another home, and for a user "
    "or a key with more scopes than the caller.",
    id=graphene.ID(required=True, description="The session's id."),
)
def end_session_field(info: GraphQLResolveInfo, id: str) -> bool:
    session = find(info, Session, id)
    if session.user is not None:
        require_home(caller_organisation(info), session.user)
        caller_maker(info).touches(session.user, caller_organisation(info))
    elif session.api_key is not None:
        caller_maker(info).ends_session_of(session.api_key)
    end_session(session, origin=caller_origin(info))
    return True
