"""GraphQL over HTTP, by the specification's draft, POST only."""

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

from core.graphql.document import Operation, parse_and_validate, select_operation
from core.graphql.document_cost import cost_error, cost_of
from core.graphql.document_limits import DocumentLimits
from core.graphql.errors import bad_input, internal_error, unavailable_problem
from core.graphql.execution import BoundedExecution, execute_within_limits
from core.graphql.media_type import JSON, negotiate
from core.graphql.problem import GraphQLCode, GraphQLContext, GraphQLProblem
from core.graphql.reply import (
    Refused,
    Reply,
    busy_reply,
    executed_reply,
    http_response,
    invalid_request_reply,
    problem_reply,
    transport_reply,
)
from core.graphql.request import GraphQLRequest, read_graphql_request
from core.graphql.variables import variable_errors
from core.http.bulkhead import Bulkhead, BulkheadFullError, Place
from core.http.unavailable import DATABASE_ERRORS


def closed_door(request: HttpRequest) -> Any:
    """The door of an endpoint that was given none."""
    raise GraphQLProblem(GraphQLCode.UNAUTHENTICATED, "Nobody may enter here.")


def no_guard(request: HttpRequest) -> GraphQLProblem | None:
    return None


def same_for_all(request: HttpRequest, session: Any) -> str:
    return ""


# Cross-site requests are the guard's business: by Fetch metadata, without a token in a cookie.
@method_decorator(csrf_exempt, name="dispatch")
class GraphQLOverHTTPView(View):
    """One GraphQL endpoint.

    ``door(request)`` returns the session of the request, which resolvers find in
    ``info.context``, or raises ``GraphQLProblem``. With ``anonymous_fields=None`` it is asked
    before the body is read. Else it is asked once a valid operation selects a root field that is
    not among them, and before anything of it is executed.

    ``guard(request)`` is asked first of all; the problem that it returns ends the request.

    From a document's parsing to the end of its execution it holds a place in ``bulkhead``, not
    while its body is read, nor while a script runs for it. The key is ``holder(request, session)``:
    until a session is known, and where none is needed, it is called with ``None``.
    """

    schema: graphene.Schema = None
    max_body_bytes: int = 16 * 1024
    door: Callable[[HttpRequest], Any] = staticmethod(closed_door)
    guard: Callable[[HttpRequest], GraphQLProblem | None] = staticmethod(no_guard)
    anonymous_fields: frozenset[str] | None = None
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
        except Refused as refused:
            reply = refused.reply
        except BulkheadFullError as error:
            reply = busy_reply(error)
        except DATABASE_ERRORS as error:
            reply = problem_reply(unavailable_problem(error, request))
        except Exception as error:  # noqa: BLE001  (logged and masked)
            masked = internal_error(error, request)
            reply = transport_reply(HTTPStatus.INTERNAL_SERVER_ERROR, masked)
        return http_response(reply, media_type or JSON)

    def _check_protocol(self, request: HttpRequest, media_type: str | None) -> None:
        if request.method != "POST":
            error = bad_input("Send a POST request.", "method")
            headers = {"Allow": "POST"}
            raise Refused(transport_reply(HTTPStatus.METHOD_NOT_ALLOWED, error, headers))
        if media_type is None:
            error = bad_input(
                "Accept application/graphql-response+json or application/json.", "Accept"
            )
            raise Refused(transport_reply(HTTPStatus.NOT_ACCEPTABLE, error))

    def _answer(self, request: HttpRequest) -> Reply:
        if problem := self.guard(request):
            raise problem
        session = self.door(request) if self.anonymous_fields is None else None
        asked = read_graphql_request(request, self.max_body_bytes)
        schema: GraphQLSchema = self.schema.graphql_schema
        limits = DocumentLimits(max_root_mutation_fields=self.max_root_mutation_fields)
        with ExitStack() as held:
            place = None if _is_short(asked) else self._take_place(held, request, session)
            document = parse_and_validate(schema, asked.query, limits)
            operation = select_operation(schema, document, asked.operation_name)
            if self._needs_session(operation):
                session = self.door(request)
                if place is not None:
                    held.close()
                    place = self._take_place(held, request, session)
            if errors := variable_errors(schema, operation.node, asked.variables):
                return invalid_request_reply(errors)
            cost = cost_of(schema, operation, asked.variables)
            if error := cost_error(operation, cost):
                return invalid_request_reply([error])
            if place is None and cost > settings.GRAPHQL_SMALL_COST:
                place = self._take_place(held, request, session)
            return self._execute(GraphQLContext(request, session, place), asked, operation)

    def _take_place(self, held: ExitStack, request: HttpRequest, session: Any) -> Place:
        return held.enter_context(self.bulkhead.place(self.holder(request, session)))

    def _execute(
        self, context: GraphQLContext, asked: GraphQLRequest, operation: Operation
    ) -> Reply:
        schema: GraphQLSchema = self.schema.graphql_schema
        result = execute_within_limits(
            self.execution,
            schema,
            operation.document,
            context=context,
            variables=asked.variables,
            operation_name=asked.operation_name,
        )
        return executed_reply(result, context.request)

    def _needs_session(self, operation: Operation) -> bool:
        """Whether the door, not asked before, is to be asked for this operation."""
        if self.anonymous_fields is None:
            return False
        return not operation.root_field_names() <= self.anonymous_fields


def _is_short(asked: GraphQLRequest) -> bool:
    """Whether it is parsed and validated in no time. Introspection costs no points, but time."""
    return len(asked.query) <= settings.GRAPHQL_SHORT_LENGTH and "__" not in asked.query
