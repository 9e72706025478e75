"""/session for the OpenAPI document: one decorator for each method of the view."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from itertools import groupby
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)

from core.http.openapi import (
    ANSWER_HEADERS,
    NO_STORE,
    RETRY_AFTER,
    Schema,
    allow_header,
    header,
    problem_description,
    problem_example,
    problem_schema,
)
from core.http.problems import CONTENT_TYPE, ProblemCode, meaning
from sessions_api.openapi_documents import (
    LOGIN_EXAMPLES,
    SESSION_EXAMPLE,
    OpenedSessionDocument,
    SessionDocument,
)
from sessions_api.serializers import OpenSessionSerializer

BEARER, COOKIE, HOST_COOKIE = "sessionToken", "sessionCookie", "hostSessionCookie"

_ALWAYS = (
    ProblemCode.INVALID_REQUEST,
    ProblemCode.METHOD_NOT_ALLOWED,
    ProblemCode.INTERNAL_ERROR,
    ProblemCode.UNAVAILABLE,
)
_WITHOUT_SESSION = (ProblemCode.NOT_AUTHENTICATED, ProblemCode.SESSION_INVALID)


def _operation(
    status: HTTPStatus,
    success: OpenApiResponse,
    success_headers: Schema,
    problems: Iterable[ProblemCode],
    problem_headers: dict[HTTPStatus, Schema],
    **description: Any,
) -> Callable[[Any], Any]:
    """``extend_schema`` with this success, these problems, and the headers of either."""
    answers, headers = {(status, "application/json"): success}, {status: success_headers}
    for problem_status, codes in _by_status((*problems, *_ALWAYS)):
        answers[problem_status, CONTENT_TYPE] = OpenApiResponse(
            problem_schema(*codes),
            problem_description(*codes),
            [OpenApiExample(code, problem_example(code), response_only=True) for code in codes],
        )
        headers[problem_status] = problem_headers.get(problem_status, {})
    headers[HTTPStatus.SERVICE_UNAVAILABLE] = RETRY_AFTER
    headers[HTTPStatus.METHOD_NOT_ALLOWED] = allow_header("GET", "POST", "DELETE", "HEAD")
    decorate = extend_schema(
        responses={(int(code), media): answer for (code, media), answer in answers.items()},
        parameters=[
            parameter
            for code, own in headers.items()
            for parameter in _header_parameters(code, ANSWER_HEADERS | NO_STORE | own)
        ],
        tags=["session"],
        **description,
    )

    def described(method: Any) -> Any:
        # What extend_schema builds upon, in place of REST framework's own schema class.
        method.kwargs = {"schema": AutoSchema}
        return decorate(method)

    return described


def _by_status(
    codes: Iterable[ProblemCode],
) -> Iterable[tuple[HTTPStatus, list[ProblemCode]]]:
    ordered = sorted(codes, key=lambda code: meaning(code).status)
    for status, group in groupby(ordered, key=lambda code: meaning(code).status):
        yield status, list(group)


def _header_parameters(status: HTTPStatus, headers: Schema) -> Iterable[OpenApiParameter]:
    for name, described in headers.items():
        yield OpenApiParameter(
            name,
            described["schema"],
            OpenApiParameter.HEADER,
            required=described["required"],
            description=described["description"],
            response=[int(status)],
        )


_CHALLENGE = {"WWW-Authenticate": header("RFC 6750.", pattern="^Bearer ")}

describe_post = _operation(
    HTTPStatus.CREATED,
    OpenApiResponse(
        OpenedSessionDocument,
        "The session is open.",
        [
            OpenApiExample(
                "Token", SESSION_EXAMPLE | {"token": f"mhx_{'0' * 46}"}, response_only=True
            )
        ],
    ),
    {"Set-Cookie": header("The token as a cookie: HttpOnly, SameSite=Lax, Path=/.")},
    (
        ProblemCode.MALFORMED_BODY,
        ProblemCode.VALIDATION_ERROR,
        ProblemCode.INVALID_CREDENTIALS,
        ProblemCode.CROSS_ORIGIN,
        ProblemCode.BODY_TOO_LARGE,
        ProblemCode.UNSUPPORTED_MEDIA_TYPE,
        ProblemCode.RATE_LIMITED,
    ),
    {HTTPStatus.TOO_MANY_REQUESTS: RETRY_AFTER},
    operation_id="openSession",
    summary="Open a session",
    description=(
        "With an API key, or with a device token. A session presented by cookie is replaced; "
        "credentials presented along with a login are otherwise ignored. Bodies: 16 KiB. "
        "30 failures in 10 minutes from one address hold up further ones."
    ),
    request={"application/json": OpenSessionSerializer},
    examples=LOGIN_EXAMPLES,
    auth=[{}],
)

describe_get = _operation(
    HTTPStatus.OK,
    OpenApiResponse(
        SessionDocument,
        "The presented session.",
        [OpenApiExample("Token", SESSION_EXAMPLE, response_only=True)],
    ),
    {},
    _WITHOUT_SESSION,
    {HTTPStatus.UNAUTHORIZED: _CHALLENGE},
    operation_id="showSession",
    summary="Show the session",
    description="Counts as use. HEAD answers the same without the document.",
)

describe_delete = _operation(
    HTTPStatus.NO_CONTENT,
    OpenApiResponse(None, "The session has ended, everywhere."),
    {"Set-Cookie": header("Clears the cookie.", pattern="; Max-Age=0;")},
    (*_WITHOUT_SESSION, ProblemCode.CROSS_ORIGIN),
    {HTTPStatus.UNAUTHORIZED: _CHALLENGE},
    operation_id="endSession",
    summary="End the session",
    description="The key or the device token stays valid.",
)


class SessionSecurity(OpenApiAuthenticationExtension):
    """A session is presented by its token or by either spelling of the cookie."""

    target_class = "sessions_api.authentication.SessionAuthentication"
    name = [BEARER, COOKIE, HOST_COOKIE]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[Schema]:
        return [
            {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "mhx_…",
                "description": "The `token` of POST /session; it wins over a cookie.",
            },
            _cookie("moonhook_session", "Where PUBLIC_URL is plain http."),
            _cookie("__Host-moonhook_session", "Where PUBLIC_URL is https."),
        ]


def _cookie(name: str, description: str) -> Schema:
    return {"type": "apiKey", "in": "cookie", "name": name, "description": description}
