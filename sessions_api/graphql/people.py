"""A user's own sessions, for /user/graphql."""

import graphene
from django.db.models import QuerySet
from graphql import GraphQLResolveInfo

from accounts.graphql.people.account import caller
from core.graphql.resolving import one
from core.http.origin import origin_of
from sessions_api.flows.end_session import end_session
from sessions_api.graphql.types import SessionType
from sessions_api.models import Session


def sessions_of_caller(info: GraphQLResolveInfo) -> QuerySet[Session]:
    return Session.objects.of_user(caller(info))


class SessionsQuery(graphene.ObjectType):
    sessions = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(SessionType))),
        description="The user's open sessions, on all devices. Newest first.",
        resolver=lambda root, info: sessions_of_caller(info),
    )


def resolve_end_session(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    end_session(one(sessions_of_caller(info), id), origin=origin_of(info.context.request))
    return True


end_session_field = graphene.Boolean(
    required=True,
    description="Ends one of the user's own sessions immediately.",
    args={
        "id": graphene.ID(required=True, description="The session's id."),
    },
    resolver=resolve_end_session,
)
