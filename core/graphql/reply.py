"""Replies and their statuses ("GraphQL over HTTP", Response).

A client that accepts ``application/graphql-response+json`` reads the outcome from the status. One
that knows only ``application/json`` takes 200 for "this is a GraphQL response": it gets another
status only where nothing was understood as GraphQL, or where a door stayed shut.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from graphql import ExecutionResult, GraphQLFormattedError

from core.graphql.errors import execution_error, problem_error
from core.graphql.media_type import GRAPHQL_RESPONSE
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.http.bulkhead import BulkheadFullError

REALM = 'Bearer realm="moonhook"'

# Errors that pass by themselves, with a retryAfter.
_TRY_LATER = {
    GraphQLCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    GraphQLCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A GraphQL response; ``json_status`` is its status under ``application/json``."""

    payload: Mapping[str, Any]
    status: HTTPStatus
    json_status: HTTPStatus
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """The request ends here, before anything is executed."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def transport_reply(
    status: HTTPStatus, error: GraphQLFormattedError, headers: Mapping[str, str] | None = None
) -> Reply:
    """For what is no GraphQL request: one status under both media types."""
    return Reply({"errors": [error]}, status, status, headers or {})


def invalid_request_reply(errors: Sequence[GraphQLFormattedError]) -> Reply:
    """For a GraphQL request that cannot be executed: no ``data`` entry."""
    return Reply({"errors": errors}, HTTPStatus.BAD_REQUEST, HTTPStatus.OK)


def problem_reply(problem: GraphQLProblem) -> Reply:
    """For a problem met before execution, which is how a door refuses."""
    error = problem_error(problem)
    match problem.code:
        case GraphQLCode.UNAUTHENTICATED:
            challenge = f'{REALM}, error="{problem.error}"' if problem.error else REALM
            headers = {"WWW-Authenticate": challenge}
            return transport_reply(HTTPStatus.UNAUTHORIZED, error, headers)
        case GraphQLCode.FORBIDDEN:
            return transport_reply(HTTPStatus.FORBIDDEN, error)
        case GraphQLCode.RATE_LIMITED | GraphQLCode.UNAVAILABLE:
            return _try_later_reply({"errors": [error]}, [error])
        case _:
            return invalid_request_reply([error])


def busy_reply(error: BulkheadFullError) -> Reply:
    """For a document that found too many at work: 503 under both media types, like a door's."""
    problem = GraphQLProblem(
        GraphQLCode.UNAVAILABLE,
        "Too many documents are being worked on. Nothing was done; try again.",
        retryAfter=error.retry_after_seconds,
    )
    headers = {"Retry-After": str(error.retry_after_seconds)}
    return transport_reply(HTTPStatus.SERVICE_UNAVAILABLE, problem_error(problem), headers)


def executed_reply(result: ExecutionResult, request: HttpRequest) -> Reply:
    """For an executed operation: 200, whatever its fields came to, also with ``data: null``.

    Except where rate limits or a fault left nothing of it. The specification demands 2xx for a
    response that has data, so a 429 or 503 leaves out the ``data`` entry that holds only nulls.
    """
    if not result.errors:
        return Reply({"data": result.data}, HTTPStatus.OK, HTTPStatus.OK)
    errors = [execution_error(error, request) for error in result.errors]
    passing = [error for error in errors if _code(error) in _TRY_LATER]
    payload = {"errors": errors, "data": result.data}
    if not passing:
        return Reply(payload, HTTPStatus.OK, HTTPStatus.OK)
    if any(value is not None for value in (result.data or {}).values()):
        return Reply(payload, HTTPStatus.OK, HTTPStatus.OK, _retry_after(passing))
    return _try_later_reply(payload, passing)


def http_response(reply: Reply, media_type: str) -> HttpResponse:
    """The body in ASCII JSON, which is UTF-8."""
    payload = dict(reply.payload)
    if media_type == GRAPHQL_RESPONSE:
        status = reply.status
        if status >= HTTPStatus.BAD_REQUEST:
            payload.pop("data", None)
    else:
        status = reply.json_status
    return HttpResponse(
        json.dumps(payload, allow_nan=False),
        status=status,
        content_type=f"{media_type}; charset=utf-8",
        headers={
            "Cache-Control": "no-store",
            "Vary": "Accept",
            "X-Content-Type-Options": "nosniff",
            **reply.headers,
        },
    )


def _try_later_reply(payload: Mapping[str, Any], passing: Sequence[GraphQLFormattedError]) -> Reply:
    status = max(_TRY_LATER[_code(error)] for error in passing)
    return Reply(payload, status, HTTPStatus.OK, _retry_after(passing))


def _retry_after(passing: Sequence[GraphQLFormattedError]) -> dict[str, str]:
    seconds = max(error["extensions"]["retryAfter"] for error in passing)
    return {"Retry-After": str(seconds)}


def _code(error: GraphQLFormattedError) -> Any:
    return error["extensions"]["code"]
