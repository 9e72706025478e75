"""The two GraphQL endpoints and their authentication."""

from django.conf import settings
from django.http import HttpRequest

from config.api import admin_schema, user_schema
from config.api.concurrency import documents, holder_of
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.view import GraphQLOverHTTPView
from core.http.problems import Problem, ProblemCode
from sessions_api.authentication import authenticate_session, refuse_cross_origin_cookie
from sessions_api.models import Credential, Session


def people_only(request: HttpRequest) -> Session:
    """Return the device session of a request to /user/graphql."""
    return _session_by(Credential.TOKEN, request, "A device session is required.")


def programs_only(request: HttpRequest) -> Session:
    """Return the API-key session of a request to /admin/graphql."""
    return _session_by(Credential.API_KEY, request, "An API key session is required.")


def same_origin_only(request: HttpRequest) -> GraphQLProblem | None:
    """Refuse requests that another site's page sends with a session cookie."""
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


user_graphql = GraphQLOverHTTPView.as_view(
    schema=user_schema.schema,
    max_body_bytes=settings.USER_GRAPHQL_MAX_BODY_BYTES,
    authenticate=people_only,
    guard=same_origin_only,
    bulkhead=documents,
    holder=holder_of,
    anonymous_fields=user_schema.ANONYMOUS_FIELDS,
    max_root_mutation_fields=1,
)

admin_graphql = GraphQLOverHTTPView.as_view(
    schema=admin_schema.schema,
    max_body_bytes=settings.ADMIN_GRAPHQL_MAX_BODY_BYTES,
    authenticate=programs_only,
    guard=same_origin_only,
    bulkhead=documents,
    holder=holder_of,
)
