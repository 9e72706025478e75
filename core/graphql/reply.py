"""The reply of a GraphQL endpoint: its media type, its status and its body ("GraphQL over HTTP").

Under ``application/graphql-response+json`` the status tells the outcome. Clients that know only
``application/json`` take 200 for "this is a GraphQL response"; they get another status only if the
request is not a GraphQL request or was refused by authentication, scopes, guard or bulkhead.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from graphql import ExecutionResult, GraphQLFormattedError

from core.graphql.problem import GraphQLCode, GraphQLProblem, execution_error, problem_error
from core.http.bulkhead import BulkheadFullError

GRAPHQL_RESPONSE = "application/graphql-response+json"
JSON = "application/json"

_QUALITY = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)")
REALM = 'Bearer realm="moonhook"'
# Transient errors; they have a retryAfter.
_TRANSIENT = {
    GraphQLCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    GraphQLCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


def negotiate(accept: str | None) -> str | None:
    """Return ``GRAPHQL_RESPONSE`` or ``JSON``, or ``None`` if ``Accept`` allows neither.

    Only clients that name the newer type know its status codes, so wildcards and a missing header
    get ``JSON``. Parameters other than ``q`` (RFC 9110, 12.4.2) are ignored.
    """
    if not accept or not accept.strip():
        return JSON
    qualities = dict(_range_and_quality(part) for part in accept.lower().split(","))
    graphql_response = qualities.get(GRAPHQL_RESPONSE, 0.0)
    json = _quality(qualities, JSON)
    if graphql_response and graphql_response >= json:
        return GRAPHQL_RESPONSE
    if json:
        return JSON
    return GRAPHQL_RESPONSE if _quality(qualities, GRAPHQL_RESPONSE) else None


def _range_and_quality(part: str) -> tuple[str, float]:
    quality = _QUALITY.search(part)
    return part.partition(";")[0].strip(), float(quality[1]) if quality else 1.0


def _quality(qualities: dict[str, float], media_type: str) -> float:
    """The quality of the most specific range that matches the type."""
    for media_range in (media_type, "application/*", "*/*"):
        if media_range in qualities:
            return qualities[media_range]
    return 0.0


@dataclass(frozen=True, slots=True)
class GraphQLReply:
    """A GraphQL response; ``json_status`` is its status under ``application/json``."""

    payload: Mapping[str, Any]
    status: HTTPStatus
    json_status: HTTPStatus
    headers: Mapping[str, str] = field(default_factory=dict)


class RefusedRequest(Exception):
    """Ends the request with a reply before anything is executed."""

    def __init__(self, reply: GraphQLReply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def transport_reply(
    status: HTTPStatus, error: GraphQLFormattedError, headers: Mapping[str, str] | None = None
) -> GraphQLReply:
    """The reply to a request that is not a GraphQL request: one status under both media types."""
    return GraphQLReply({"errors": [error]}, status, status, headers or {})


def invalid_request_reply(errors: Sequence[GraphQLFormattedError]) -> GraphQLReply:
    """The reply to a GraphQL request that cannot be executed; it has no ``data`` entry."""
    return GraphQLReply({"errors": errors}, HTTPStatus.BAD_REQUEST, HTTPStatus.OK)


def forbidden_reply(errors: Sequence[GraphQLFormattedError]) -> GraphQLReply:
    """The reply to a document with fields that the session may not ask for; none of it ran."""
    return GraphQLReply({"errors": errors}, HTTPStatus.FORBIDDEN, HTTPStatus.FORBIDDEN)


def problem_reply(problem: GraphQLProblem) -> GraphQLReply:
    """The reply to a problem before execution, such as failed authentication."""
    error = problem_error(problem)
    match problem.code:
        case GraphQLCode.UNAUTHENTICATED:
            challenge = f'{REALM}, error="{problem.error}"' if problem.error else REALM
            headers = {"WWW-Authenticate": challenge}
            return transport_reply(HTTPStatus.UNAUTHORIZED, error, headers)
        case GraphQLCode.FORBIDDEN:
            return transport_reply(HTTPStatus.FORBIDDEN, error)
        case GraphQLCode.RATE_LIMITED | GraphQLCode.UNAVAILABLE:
            return _transient_reply({"errors": [error]}, [error])
        case _:
            return invalid_request_reply([error])


def busy_reply(error: BulkheadFullError) -> GraphQLReply:
    """The reply where the bulkhead is full: 503 under both media types."""
    problem = GraphQLProblem(
        GraphQLCode.UNAVAILABLE,
        "Too many documents are being executed. Nothing was done; try again.",
        retryAfter=error.retry_after_seconds,
    )
    headers = {"Retry-After": str(error.retry_after_seconds)}
    return transport_reply(HTTPStatus.SERVICE_UNAVAILABLE, problem_error(problem), headers)


def executed_reply(result: ExecutionResult, request: HttpRequest) -> GraphQLReply:
    """The reply to an executed operation: 200, also with errors and ``data: null``.

    If transient errors left only nulls, the status is 429 or 503. The specification demands 2xx for
    a response with data, so these leave out ``data``.
    """
    if not result.errors:
        return GraphQLReply({"data": result.data}, HTTPStatus.OK, HTTPStatus.OK)
    errors = [execution_error(error, request) for error in result.errors]
    transient = [error for error in errors if _code(error) in _TRANSIENT]
    payload = {"errors": errors, "data": result.data}
    if not transient:
        return GraphQLReply(payload, HTTPStatus.OK, HTTPStatus.OK)
    if any(value is not None for value in (result.data or {}).values()):
        return GraphQLReply(payload, HTTPStatus.OK, HTTPStatus.OK, _retry_after(transient))
    return _transient_reply(payload, transient)


def http_response(reply: GraphQLReply, media_type: str) -> HttpResponse:
    """The HTTP response of a reply; its body is ASCII JSON, and so UTF-8."""
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


def _transient_reply(
    payload: Mapping[str, Any], transient: Sequence[GraphQLFormattedError]
) -> GraphQLReply:
    status = max(_TRANSIENT[_code(error)] for error in transient)
    return GraphQLReply(payload, status, HTTPStatus.OK, _retry_after(transient))


def _retry_after(transient: Sequence[GraphQLFormattedError]) -> dict[str, str]:
    seconds = max(error["extensions"]["retryAfter"] for error in transient)
    return {"Retry-After": str(seconds)}


def _code(error: GraphQLFormattedError) -> Any:
    return error["extensions"]["code"]
