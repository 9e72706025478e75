"""Step 2: reading the GraphQL request from an HTTP request ("GraphQL over HTTP", Request)."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest
from graphql import GraphQLFormattedError

from core.graphql.problem import GraphQLCode, GraphQLProblem, bad_input, problem_error
from core.graphql.reply import JSON, RefusedRequest, transport_reply
from core.http.body import BodyIncomplete, BodyTooLarge, NotAnObject, parse_json_object, read_body


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    query: str
    operation_name: str | None
    variables: dict[str, Any]


def read_graphql_request(request: HttpRequest, max_body_bytes: int) -> GraphQLRequest:
    """Read the request from a POST body: one JSON object in UTF-8, never a list of them.

    The query string is ignored: documents in URLs end up in logs, and another site's form can send
    them.

    Raises ``RefusedRequest``.
    """
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    if request.content_type != JSON or charset != "utf-8":
        raise _refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            bad_input("Send application/json in UTF-8.", "Content-Type"),
        )
    members = _json_object(_body(request, max_body_bytes))
    query = members.get("query")
    if not isinstance(query, str):
        raise _malformed("query must be a string.", "query")
    operation_name = members.get("operationName")
    if not isinstance(operation_name, str | None):
        raise _malformed("operationName must be a string or null.", "operationName")
    variables = _object_or_null(members, "variables")
    _object_or_null(members, "extensions")
    return GraphQLRequest(query, operation_name, variables)


def _body(request: HttpRequest, max_body_bytes: int) -> bytes:
    try:
        return read_body(request, max_body_bytes)
    except BodyTooLarge:
        message = f"The body may have at most {max_body_bytes} bytes."
        problem = GraphQLProblem(GraphQLCode.LIMIT_EXCEEDED, message)
        raise _refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem_error(problem)) from None
    except BodyIncomplete:
        raise _malformed("The body is incomplete.", "body") from None


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        members = parse_json_object(body)
        # Escapes can spell a lone surrogate, which no database and no reply can encode.
        json.dumps(members, ensure_ascii=False).encode("utf-8")
    except NotAnObject:
        message = "The body must be one JSON object; there is no batching."
        raise _malformed(message, "body") from None
    except (ValueError, RecursionError):
        raise _malformed("The body is not JSON in UTF-8.", "body") from None
    return members


def _object_or_null(members: dict[str, Any], name: str) -> dict[str, Any]:
    value = members.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _malformed(f"{name} must be an object or null.", name)
    return value


def _malformed(message: str, field: str) -> RefusedRequest:
    return _refused(HTTPStatus.BAD_REQUEST, bad_input(message, field))


def _refused(status: HTTPStatus, error: GraphQLFormattedError) -> RefusedRequest:
    return RefusedRequest(transport_reply(status, error))
