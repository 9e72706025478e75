"""Problem documents (RFC 9457), the one error shape outside GraphQL."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse

from core.http.request_id import request_id_of

CONTENT_TYPE = "application/problem+json"


class ProblemCode(StrEnum):
    """What went wrong, for programs."""

    MALFORMED_BODY = "malformed-body"
    VALIDATION_ERROR = "validation-error"
    INVALID_REQUEST = "invalid-request"
    INVALID_CREDENTIALS = "invalid-credentials"
    NOT_AUTHENTICATED = "not-authenticated"
    SESSION_INVALID = "session-invalid"
    CROSS_ORIGIN = "cross-origin"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    BODY_TOO_LARGE = "body-too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    RATE_LIMITED = "rate-limited"
    INTERNAL_ERROR = "internal-error"
    SCRIPT_FAILED = "script-failed"
    SCRIPT_OUT_OF_MEMORY = "script-out-of-memory"
    REPLY_TOO_LARGE = "reply-too-large"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    RUN_NOT_RECORDED = "run-not-recorded"
    SCRIPT_TIMED_OUT = "script-timed-out"


class Meaning(NamedTuple):
    """What a code says; ``detail`` stands where the caller gives none."""

    status: HTTPStatus
    title: str
    detail: str


# code -> its meaning
_MEANING: dict[ProblemCode, tuple[HTTPStatus, str, str]] = {
    ProblemCode.MALFORMED_BODY: (
        HTTPStatus.BAD_REQUEST,
        "Malformed body",
        "The body is not a JSON object in UTF-8.",
    ),
    ProblemCode.VALIDATION_ERROR: (
        HTTPStatus.BAD_REQUEST,
        "Validation error",
        "Some fields are missing or wrong.",
    ),
    ProblemCode.INVALID_REQUEST: (
        HTTPStatus.BAD_REQUEST,
        "Invalid request",
        "The request cannot be understood.",
    ),
    ProblemCode.INVALID_CREDENTIALS: (
        HTTPStatus.UNAUTHORIZED,
        "Invalid credentials",
        "The credentials are not valid.",
    ),
    ProblemCode.NOT_AUTHENTICATED: (
        HTTPStatus.UNAUTHORIZED,
        "Not authenticated",
        "Present a session: Authorization: Bearer mhx_…",
    ),
    ProblemCode.SESSION_INVALID: (
        HTTPStatus.UNAUTHORIZED,
        "Session invalid",
        "The session is unknown, has expired or was ended.",
    ),
    ProblemCode.CROSS_ORIGIN: (
        HTTPStatus.FORBIDDEN,
        "Cross-origin request",
        "This request came from another site's page and was refused.",
    ),
    ProblemCode.NOT_FOUND: (
        HTTPStatus.NOT_FOUND,
        "Not found",
        "There is nothing here.",
    ),
    ProblemCode.METHOD_NOT_ALLOWED: (
        HTTPStatus.METHOD_NOT_ALLOWED,
        "Method not allowed",
        "The Allow header lists the methods of this address.",
    ),
    ProblemCode.BODY_TOO_LARGE: (
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "Body too large",
        "The body is larger than this address takes.",
    ),
    ProblemCode.UNSUPPORTED_MEDIA_TYPE: (
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "Unsupported media type",
        "Send Content-Type: application/json.",
    ),
    ProblemCode.RATE_LIMITED: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too many attempts",
        "Try again after the seconds that Retry-After says.",
    ),
    ProblemCode.INTERNAL_ERROR: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Internal error",
        "Something went wrong here. The request id finds it in the log.",
    ),
    ProblemCode.SCRIPT_FAILED: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Script failed",
        "The script ended with an error. Its administrators find it in the run.",
    ),
    ProblemCode.SCRIPT_OUT_OF_MEMORY: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Script out of memory",
        "The script used more memory than it may.",
    ),
    ProblemCode.REPLY_TOO_LARGE: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Reply too large",
        "The script's reply is larger than it may be.",
    ),
    ProblemCode.BUSY: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Busy",
        "No place to run the script came free in time. Nothing ran; try again.",
    ),
    ProblemCode.UNAVAILABLE: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Unavailable",
        "Something that this needs does not answer at present. Try again.",
    ),
    ProblemCode.RUN_NOT_RECORDED: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Run not recorded",
        "The script ran, but its run could not be stored, so its reply is withheld.",
    ),
    ProblemCode.SCRIPT_TIMED_OUT: (
        HTTPStatus.GATEWAY_TIMEOUT,
        "Script timed out",
        "The script took longer than it may.",
    ),
}


def meaning(code: ProblemCode) -> Meaning:
    return Meaning(*_MEANING[code])


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field. ``code`` is ``required``, ``invalid``, …; the value is never repeated."""

    field: str
    code: str
    detail: str


class Problem(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        code: ProblemCode,
        detail: str = "",
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.extensions = dict(extensions or {})


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The problem as ``application/problem+json``, never cached."""
    status, title, default_detail = meaning(problem.code)
    document: dict[str, object] = {
        "type": f"urn:moonhook:problem:{problem.code}",
        "title": title,
        "status": int(status),
        "detail": problem.detail or default_detail,
        "code": str(problem.code),
        "requestId": request_id_of(request),
        **problem.extensions,
    }
    if problem.errors:
        document["errors"] = [asdict(error) for error in problem.errors]
    body = json.dumps(document, ensure_ascii=False)
    response = HttpResponse(body.encode(), content_type=CONTENT_TYPE, status=status)
    response["Cache-Control"] = "no-store"
    for name, value in problem.headers.items():
        response[name] = value
    return response
