"""Who may enter which GraphQL endpoint."""

from django.http import HttpRequest

from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.http.problems import Problem, ProblemCode
from sessions_api.authentication import authenticate_session, refuse_cross_origin_cookie
from sessions_api.models import Credential, Session


def people_only(request: HttpRequest) -> Session:
    """A device session, for /user/graphql."""
    return _session_by(Credential.TOKEN, request, "This needs the session of a device.")


def programs_only(request: HttpRequest) -> Session:
    """An API-key session, for /admin/graphql."""
    return _session_by(Credential.API_KEY, request, "This needs the session of an API key.")


def same_origin_only(request: HttpRequest) -> GraphQLProblem | None:
    """Refuses what another site's page sends with our cookie."""
    try:
        refuse_cross_origin_cookie(request)
    except Problem:
        return GraphQLProblem(
            GraphQLCode.FORBIDDEN, "This request came from another site's page and was refused."
        )
    return None


def _session_by(credential: Credential, request: HttpRequest, otherwise: str) -> Session:
    try:
        session = authenticate_session(request)
    except Problem as problem:
        refused = problem.code is ProblemCode.SESSION_INVALID
        raise GraphQLProblem(
            GraphQLCode.UNAUTHENTICATED,
            "The session is unknown, has expired or was ended."
            if refused
            else "Present a session: Authorization: Bearer mhx_…",
            error="invalid_token" if refused else None,
        ) from None
    if session.credential is not credential:
        raise GraphQLProblem(GraphQLCode.FORBIDDEN, otherwise)
    return session
