"""Problem documents (RFC 9457), the error format outside GraphQL."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse

from core.http.origin import request_id_of

CONTENT_TYPE = "application/problem+json"


class PlainResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class ProblemCode(StrEnum):
    """The machine-readable codes of problems of any service; apps have codes of their own."""

    MALFORMED_BODY = "malformed-body"
    VALIDATION_ERROR = "validation-error"
    INVALID_REQUEST = "invalid-request"
    INVALID_CREDENTIALS = "invalid-credentials"
    NOT_AUTHENTICATED = "not-authenticated"
    SESSION_INVALID = "session-invalid"
    CROSS_ORIGIN = "cross-origin"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    BODY_TOO_LARGE = "body-too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    LIMIT_EXCEEDED = "limit-exceeded"
    RATE_LIMITED = "rate-limited"
    INTERNAL_ERROR = "internal-error"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"


class Meaning(NamedTuple):
    """The status and texts of a code; ``detail`` is the default detail."""

    status: HTTPStatus
    title: str
    detail: str


_meanings: dict[StrEnum, Meaning] = {
    ProblemCode.MALFORMED_BODY: Meaning(
        HTTPStatus.BAD_REQUEST,
        "Malformed body",
        "The body is not a JSON object in UTF-8.",
    ),
    ProblemCode.VALIDATION_ERROR: Meaning(
        HTTPStatus.BAD_REQUEST,
        "Validation error",
        "Some fields are missing or wrong.",
    ),
    ProblemCode.INVALID_REQUEST: Meaning(
        HTTPStatus.BAD_REQUEST,
        "Invalid request",
        "The request cannot be understood.",
    ),
    ProblemCode.INVALID_CREDENTIALS: Meaning(
        HTTPStatus.UNAUTHORIZED,
        "Invalid credentials",
        "The credentials are not valid.",
    ),
    ProblemCode.NOT_AUTHENTICATED: Meaning(
        HTTPStatus.UNAUTHORIZED,
        "Not authenticated",
        "Authenticate: send Authorization: Bearer with a session token (mhx_…). POST /session "
        "opens one.",
    ),
    ProblemCode.SESSION_INVALID: Meaning(
        HTTPStatus.UNAUTHORIZED,
        "Session invalid",
        "The session is unknown, has expired or was ended.",
    ),
    ProblemCode.CROSS_ORIGIN: Meaning(
        HTTPStatus.FORBIDDEN,
        "Cross-origin request",
        "This request came from another site's page and was refused.",
    ),
    ProblemCode.FORBIDDEN: Meaning(
        HTTPStatus.FORBIDDEN,
        "Forbidden",
        "The credential does not open this.",
    ),
    ProblemCode.NOT_FOUND: Meaning(
        HTTPStatus.NOT_FOUND,
        "Not found",
        "No such path.",
    ),
    ProblemCode.METHOD_NOT_ALLOWED: Meaning(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "Method not allowed",
        "The Allow header lists the allowed methods.",
    ),
    ProblemCode.BODY_TOO_LARGE: Meaning(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "Body too large",
        "The body is larger than this address allows.",
    ),
    ProblemCode.UNSUPPORTED_MEDIA_TYPE: Meaning(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "Unsupported media type",
        "Send Content-Type: application/json.",
    ),
    ProblemCode.LIMIT_EXCEEDED: Meaning(
        HTTPStatus.CONFLICT,
        "Limit exceeded",
        "As much as allowed is there already.",
    ),
    ProblemCode.RATE_LIMITED: Meaning(
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too many attempts",
        "Try again after the number of seconds in Retry-After.",
    ),
    ProblemCode.INTERNAL_ERROR: Meaning(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Internal error",
        "Something went wrong. Find it in the log by its request id.",
    ),
    ProblemCode.BUSY: Meaning(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Busy",
        "Too many requests are being handled. Nothing was done; try again.",
    ),
    ProblemCode.UNAVAILABLE: Meaning(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Unavailable",
        "A required service is unavailable. Try again later.",
    ),
}


def register_problems(meanings: Mapping[StrEnum, Meaning]) -> None:
    """Registers the codes of an app, at start."""
    _meanings.update(meanings)


def registered_codes() -> Iterable[StrEnum]:
    """The codes of core and of all apps."""
    return _meanings.keys()


def meaning(code: StrEnum) -> Meaning:
    return _meanings[code]


@dataclass(frozen=True, slots=True)
class FieldError:
    """A wrong field. ``code`` is ``required``, ``invalid``, …; the value is never repeated."""

    field: str
    code: str
    detail: str


class Problem(Exception):
    """An exception that ends the request with a problem document.

    ``detail`` and ``status`` replace those of the code.
    """

    def __init__(
        self,
        code: StrEnum,
        detail: str = "",
        *,
        status: HTTPStatus | None = None,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.status = status
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.extensions = dict(extensions or {})


def no_such_path_problem(path: str) -> Problem:
    """The refusal of a path that does not exist, which names a trailing slash."""
    detail = "No such path. Paths have no trailing slash." if path.endswith("/") else ""
    return Problem(ProblemCode.NOT_FOUND, detail)


def problem_document(problem: Problem, request_id: str) -> PlainResponse:
    """A response with the problem as ``application/problem+json``; not cacheable."""
    default_status, title, default_detail = meaning(problem.code)
    status = problem.status or default_status
    document: dict[str, object] = {
        "type": f"urn:moonhook:problem:{problem.code}",
        "title": title,
        "status": int(status),
        "detail": problem.detail or default_detail,
        "code": str(problem.code),
        "requestId": request_id,
        **problem.extensions,
    }
    if problem.errors:
        document["errors"] = [asdict(error) for error in problem.errors]
    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", **problem.headers}
    return PlainResponse(status, headers, json.dumps(document, ensure_ascii=False).encode())


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    status, headers, body = problem_document(problem, request_id_of(request))
    return HttpResponse(body, status=status, headers=headers)
