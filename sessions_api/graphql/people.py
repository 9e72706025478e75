"""A user's own sessions, for /user/graphql."""

import graphene
from django.db.models import QuerySet
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.people import caller
from core.graphql.mutation import mutation
from core.graphql.resolving import caller_origin, one
from sessions_api.flows import end_session
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


def sessions_of_caller(info: GraphQLResolveInfo) -> QuerySet[Session]:
    return Session.objects.of_user(caller(info))


class SessionsQuery(graphene.ObjectType):
    sessions = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(SessionType))),
        description="The user's open sessions, on all devices. Newest first.",
        resolver=lambda root, info: sessions_of_caller(info),
    )


@mutation(
    graphene.Boolean,
    "Ends one of the user's own sessions immediately.",
    id=graphene.ID(required=True, description="The session's id."),
)
def end_session_field(info: GraphQLResolveInfo, id: str) -> bool:
    end_session(one(sessions_of_caller(info), id), origin=caller_origin(info))
    return True
