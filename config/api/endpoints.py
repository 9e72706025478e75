"""The two GraphQL endpoints, their authentication, and the limit on documents in execution.

The interface's descriptions are served to everyone: OpenAPI and the GraphQL schemas. The OpenAPI
document is written by hand; the conformance tests compare it with the server. The schemas are
written by ``manage.py export_schemas``.
"""

from hashlib import sha256

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition

from accounts.graphql.field_scopes import people_access, programs_access
from config.api import admin_schema, user_schema
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.view import GraphQLOverHTTPView
from core.http.bulkhead import Bulkhead
from core.http.origin import client_address, network_of
from core.http.problem_handlers import View, safe_methods_only
from core.http.problems import Problem, ProblemCode, meaning
from sessions_api.authentication import authenticate_session, refuse_cross_origin_cookie
from sessions_api.models import Credential, Session

documents = Bulkhead(
    "graphql",
    limit=settings.GRAPHQL_AT_ONCE,
    limit_per_key=settings.GRAPHQL_AT_ONCE_PER_ORGANISATION,
    max_waiting=settings.GRAPHQL_WAITING,
    wait_seconds=settings.GRAPHQL_WAIT_SECONDS,
)


def holder_of(request: HttpRequest, session: Session | None) -> str:
    """Return the key of a document's place: its organisation, user, or client network."""
    if session is None:
        return f"client {network_of(client_address(request))}"
    if session.api_key is not None:
        return f"organisation {session.api_key.organisation_id}"
    return f"user {session.device_token.user_id}"  # type: ignore[union-attr]


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
            problem.detail or meaning(problem.code).detail,
            error="invalid_token" if refused else None,
        ) from None
    if session.credential is not credential:
        raise GraphQLProblem(GraphQLCode.FORBIDDEN, otherwise)
    return session


user_graphql = GraphQLOverHTTPView.as_view(
    schema=user_schema.schema,
    max_body_bytes=settings.USER_GRAPHQL_MAX_BODY_BYTES,
    authenticate=people_only,
    access=people_access,
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
    access=programs_access,
    guard=same_origin_only,
    bulkhead=documents,
    holder=holder_of,
)


def _serving(path: str, content_type: str) -> View:
    """A view of the file in ``docs``, which caches may keep for an hour."""
    content = (settings.BASE_DIR / "docs" / path).read_bytes()
    etag = f'"{sha256(content).hexdigest()}"'

    @safe_methods_only
    @cache_control(public=True, max_age=3600)
    @condition(etag_func=lambda request: etag)
    def serve(request: HttpRequest) -> HttpResponseBase:
        return HttpResponse(content, content_type=content_type)

    return serve


serve_openapi = _serving("openapi.json", "application/vnd.oai.openapi+json;version=3.1")
serve_admin_schema = _serving("schemas/admin.graphql", "text/plain; charset=utf-8")
serve_user_schema = _serving("schemas/user.graphql", "text/plain; charset=utf-8")
