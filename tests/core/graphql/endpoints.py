"""Two endpoints on the test schema, set up like the project's own; both take alice's session."""

from typing import Any

from django.http import HttpRequest
from django.urls import path

from core.graphql.field_needs import FieldAccess, FieldNeeds, Needs, needs
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.view import GraphQLOverHTTPView
from core.http.bulkhead import Bulkhead
from tests.core.graphql.schema import schema

ALICE = "Bearer alice"
MAX_BODY_BYTES = 16 * 1024


class Open(FieldNeeds):
    """A table that needs nothing of anybody."""

    def of(self, type_name: str, field_name: str) -> Needs | None:
        return needs()


open_to_all = FieldAccess(Open())
bulkhead = Bulkhead("graphql", limit=3, limit_per_key=2)


def authenticate(request: HttpRequest) -> Any:
    match request.headers.get("Authorization"):
        case "Bearer alice":
            return "alice's session"
        case "Bearer machine":
            raise GraphQLProblem(GraphQLCode.FORBIDDEN, "This session is for another endpoint.")
        case "Bearer broken":
            raise RuntimeError("The database is gone.")
        case None:
            raise GraphQLProblem(GraphQLCode.UNAUTHENTICATED, "No session was presented.")
        case _:
            raise GraphQLProblem(
                GraphQLCode.UNAUTHENTICATED, "No such session.", error="invalid_token"
            )


def guard(request: HttpRequest) -> GraphQLProblem | None:
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        return GraphQLProblem(GraphQLCode.FORBIDDEN, "Another site's page may not do this.")
    return None


def holder(request: HttpRequest, session: Any) -> str:
    return session or "nobody"


user_endpoint = GraphQLOverHTTPView.as_view(
    schema=schema,
    max_body_bytes=MAX_BODY_BYTES,
    authenticate=authenticate,
    access=open_to_all,
    guard=guard,
    bulkhead=bulkhead,
    holder=holder,
    anonymous_fields=frozenset({"sendPinCode", "checkPinCode", "__schema", "__type", "__typename"}),
    max_root_mutation_fields=1,
)
admin_endpoint = GraphQLOverHTTPView.as_view(
    schema=schema,
    max_body_bytes=MAX_BODY_BYTES,
    authenticate=authenticate,
    access=open_to_all,
    guard=guard,
    bulkhead=bulkhead,
    holder=holder,
    anonymous_fields=None,
    max_root_mutation_fields=None,
)

urlpatterns = [
    path("user/graphql", user_endpoint),
    path("admin/graphql", admin_endpoint),
]
