"""An organisation's sessions, for /admin/graphql."""

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.users import require_home
from accounts.graphql.scope import caller_organisation, find, scoped
from accounts.models import User
from core.graphql.connection import Page, connection_field, page_of
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of
from sessions_api.flows.end_session import end_session
from sessions_api.graphql.types import SessionConnection
from sessions_api.models import Session


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


def resolve_end_session(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    session = find(info, Session, id)
    if session.user is not None:
        with domain_errors():
            require_home(caller_organisation(info), session.user)
    end_session(session, origin=origin_of(info.context.request))
    return True


end_session_field = graphene.Boolean(
    required=True,
    description="Ends a session immediately. FORBIDDEN for a user of another home.",
    args={
        "id": graphene.ID(required=True, description="The session's id."),
    },
    resolver=resolve_end_session,
)
