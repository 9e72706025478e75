"""Step 1: the view of a GraphQL endpoint (POST only), which calls the other steps."""

from collections.abc import Callable
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

import graphene
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from graphql import GraphQLSchema

from core.database.unavailable import DatabaseUnavailable
from core.graphql.document import Operation, parse_and_validate, select_operation, variable_errors
from core.graphql.document_cost import cost_error, cost_of
from core.graphql.document_limits import DocumentLimits
from core.graphql.execution import BoundedExecution, execute_within_limits
from core.graphql.field_needs import FieldAccess
from core.graphql.problem import (
    GraphQLCode,
    GraphQLContext,
    GraphQLProblem,
    bad_input,
    internal_error,
    unavailable_problem,
)
from core.graphql.reply import (
    JSON,
    GraphQLReply,
    RefusedRequest,
    busy_reply,
    executed_reply,
    forbidden_reply,
    http_response,
    invalid_request_reply,
    negotiate,
    problem_reply,
    transport_reply,
)
from core.graphql.request import GraphQLRequest, read_graphql_request
from core.http.bulkhead import Bulkhead, BulkheadFullError, Place


def deny_everybody(request: HttpRequest) -> Any:
    """Default authentication: an endpoint without its own is closed."""
    raise GraphQLProblem(GraphQLCode.UNAUTHENTICATED, "This endpoint is closed.")


def no_guard(request: HttpRequest) -> GraphQLProblem | None:
    return None


def same_for_all(request: HttpRequest, session: Any) -> str:
    return ""


# The guard refuses cross-site requests by Fetch metadata, so no CSRF token is needed.
@method_decorator(csrf_exempt, name="dispatch")
class GraphQLOverHTTPView(View):
    """One GraphQL endpoint.

    ``guard(request)`` is called first; a problem that it returns ends the request.

    ``authenticate(request)`` returns the session of the request, which resolvers find in
    ``info.context``, or raises ``GraphQLProblem``. With ``anonymous_fields=None`` it is called
    before the body is read. Otherwise it is called for operations that select any other root
    field, before they are executed.

    ``access`` is asked before anything of the document runs, and refuses every field by default.

    A document that is not small holds a place in ``bulkhead`` from parsing to the end of its
    execution, but not while its body is read or a resolver has left the place to others. Its key is
    ``holder(request, session)``; ``session`` is ``None`` while it is unknown or not needed.
    """

    schema: graphene.Schema = None
    max_body_bytes: int = 16 * 1024
    authenticate: Callable[[HttpRequest], Any] = staticmethod(deny_everybody)
    guard: Callable[[HttpRequest], GraphQLProblem | None] = staticmethod(no_guard)
    anonymous_fields: frozenset[str] | None = None
    access: FieldAccess = FieldAccess()
    max_root_mutation_fields: int | None = None
    execution: type[BoundedExecution] = BoundedExecution
    bulkhead: Bulkhead = None  # type: ignore[assignment]  # every endpoint is given one
    holder: Callable[[HttpRequest, Any], str] = staticmethod(same_for_all)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        media_type = negotiate(request.headers.get("Accept"))
        try:
            self._check_protocol(request, media_type)
            return http_response(self._answer(request), media_type or JSON)
        except GraphQLProblem as problem:
            reply = problem_reply(problem)
        except RefusedRequest as refused:
            reply = refused.reply
        except BulkheadFullError as error:
            reply = busy_reply(error)
        except DatabaseUnavailable as error:
            reply = problem_reply(unavailable_problem(error, request))
        except Exception as error:  # noqa: BLE001  (logged and masked)
            masked = internal_error(error, request)
            reply = transport_reply(HTTPStatus.INTERNAL_SERVER_ERROR, masked)
        return http_response(reply, media_type or JSON)

    def _check_protocol(self, request: HttpRequest, media_type: str | None) -> None:
        if request.method != "POST":
            error = bad_input("Send a POST request.", "method")
            headers = {"Allow": "POST"}
            raise RefusedRequest(transport_reply(HTTPStatus.METHOD_NOT_ALLOWED, error, headers))
        if media_type is None:
            error = bad_input(
                "Accept application/graphql-response+json or application/json.", "Accept"
            )
            raise RefusedRequest(transport_reply(HTTPStatus.NOT_ACCEPTABLE, error))

    def _answer(self, request: HttpRequest) -> GraphQLReply:
        if problem := self.guard(request):
            raise problem
        session = self.authenticate(request) if self.anonymous_fields is None else None
        graphql_request = read_graphql_request(request, self.max_body_bytes)
        schema: GraphQLSchema = self.schema.graphql_schema
        limits = DocumentLimits(max_root_mutation_fields=self.max_root_mutation_fields)
        with ExitStack() as held:
            place = None if _is_short(graphql_request) else self._take_place(held, request, session)
            document = parse_and_validate(schema, graphql_request.query, limits)
            operation = select_operation(schema, document, graphql_request.operation_name)
            if self._needs_session(operation):
                session = self.authenticate(request)
                if place is not None:
                    held.close()
                    place = self._take_place(held, request, session)
            if unmet := self.access.errors(schema, operation, request, session):
                return forbidden_reply(unmet)
            if errors := variable_errors(schema, operation.node, graphql_request.variables):
                return invalid_request_reply(errors)
            cost = cost_of(schema, operation, graphql_request.variables)
            if error := cost_error(operation, cost):
                return invalid_request_reply([error])
            if place is None and cost > settings.GRAPHQL_SMALL_COST:
                place = self._take_place(held, request, session)
            context = GraphQLContext(request, session, place)
            return self._execute(context, graphql_request, operation)

    def _take_place(self, held: ExitStack, request: HttpRequest, session: Any) -> Place:
        return held.enter_context(self.bulkhead.place(self.holder(request, session)))

    def _execute(
        self, context: GraphQLContext, graphql_request: GraphQLRequest, operation: Operation
    ) -> GraphQLReply:
        schema: GraphQLSchema = self.schema.graphql_schema
        result = execute_within_limits(
            self.execution,
            schema,
            operation.document,
            context=context,
            variables=graphql_request.variables,
            operation_name=graphql_request.operation_name,
        )
        return executed_reply(result, context.request)

    def _needs_session(self, operation: Operation) -> bool:
        """Whether the request has still to be authenticated for this operation."""
        if self.anonymous_fields is None:
            return False
        return not operation.root_field_names() <= self.anonymous_fields


def _is_short(graphql_request: GraphQLRequest) -> bool:
    """Whether parsing and validation are quick. Introspection costs no points, but takes time."""
    query = graphql_request.query
    return len(query) <= settings.GRAPHQL_SHORT_LENGTH and "__" not in query
