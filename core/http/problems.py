"""Problem documents (RFC 9457), the error format outside GraphQL."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse

from core.http.plain_response import PlainResponse
from core.http.request_id import request_id_of

CONTENT_TYPE = "application/problem+json"


class ProblemCode(StrEnum):
    """The machine-readable code of a problem."""

    MALFORMED_BODY = "malformed-body"
    VALIDATION_ERROR = "validation-error"
    INVALID_REQUEST = "invalid-request"
    INVALID_CREDENTIALS = "invalid-credentials"
    INVALID_SIGNATURE = "invalid-signature"
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
    DUPLICATE_IN_PROGRESS = "duplicate-in-progress"
    QUEUE_FULL = "queue-full"
    UNAVAILABLE = "unavailable"
    RUN_NOT_RECORDED = "run-not-recorded"
    SCRIPT_TIMED_OUT = "script-timed-out"


class Meaning(NamedTuple):
    """The status and texts of a code; ``detail`` is the default detail."""

    status: HTTPStatus
    title: str
    detail: str


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
    ProblemCode.INVALID_SIGNATURE: (
        HTTPStatus.UNAUTHORIZED,
        "Invalid signature",
        "The hook's sender did not sign this call.",
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
        "The Allow header lists the allowed methods.",
    ),
    ProblemCode.BODY_TOO_LARGE: (
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "Body too large",
        "The body is larger than this address allows.",
    ),
    ProblemCode.UNSUPPORTED_MEDIA_TYPE: (
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "Unsupported media type",
        "Send Content-Type: application/json.",
    ),
    ProblemCode.RATE_LIMITED: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too many attempts",
        "Try again after the number of seconds in Retry-After.",
    ),
    ProblemCode.INTERNAL_ERROR: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Internal error",
        "Something went wrong. Find it in the log by its request id.",
    ),
    ProblemCode.SCRIPT_FAILED: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Script failed",
        "The script ended with an error. Administrators see it in the run.",
    ),
    ProblemCode.SCRIPT_OUT_OF_MEMORY: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Script out of memory",
        "The script exceeded its memory limit.",
    ),
    ProblemCode.REPLY_TOO_LARGE: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Reply too large",
        "The script's reply exceeds the size limit.",
    ),
    ProblemCode.BUSY: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Busy",
        "Too many scripts are running. This one did not start; try again.",
    ),
    ProblemCode.DUPLICATE_IN_PROGRESS: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Duplicate in progress",
        "The same delivery is being processed. Try again for its reply.",
    ),
    ProblemCode.QUEUE_FULL: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Queue full",
        "Too many runs wait in the queue. This one was not queued; try again.",
    ),
    ProblemCode.UNAVAILABLE: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Unavailable",
        "A required service is unavailable. Try again later.",
    ),
    ProblemCode.RUN_NOT_RECORDED: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Run not recorded",
        "The script ran, but its run could not be stored, so its reply is withheld.",
    ),
    ProblemCode.SCRIPT_TIMED_OUT: (
        HTTPStatus.GATEWAY_TIMEOUT,
        "Script timed out",
        "The script exceeded its time limit.",
    ),
}


def meaning(code: ProblemCode) -> Meaning:
    return Meaning(*_MEANING[code])


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
        code: ProblemCode,
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
