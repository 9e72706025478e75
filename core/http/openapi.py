"""The parts of the OpenAPI document for problem documents and common headers."""

from http import HTTPStatus
from typing import Any

from core.http.problems import CONTENT_TYPE, ProblemCode, meaning
from core.http.request_id import HEADER

Schema = dict[str, Any]

PROBLEM_REF = "#/components/schemas/Problem"

_REQUEST_ID = "00000000000000000000000000000000"

PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "requestId"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri",
            "pattern": "^urn:moonhook:problem:[a-z-]+$",
            "description": "The code as a URN.",
        },
        "title": {"type": "string", "description": "Fixed for each code."},
        "status": {"type": "integer", "description": "The HTTP status of the response."},
        "detail": {"type": "string", "description": "Human-readable explanation."},
        "code": {
            "type": "string",
            "enum": [str(code) for code in ProblemCode],
            "description": "Machine-readable code.",
        },
        "requestId": {
            "type": "string",
            "pattern": "^[0-9a-f]{32}$",
            "description": f"Identifies the request in the log; also sent as {HEADER}.",
        },
        "runId": {
            "type": "string",
            "format": "uuid",
            "description": "The run that failed; only where a script ran.",
        },
        "errors": {
            "type": "array",
            "minItems": 1,
            "description": "The wrong fields; only with `validation-error`.",
            "items": {"$ref": "#/components/schemas/FieldError"},
        },
    },
    "if": {"properties": {"code": {"const": str(ProblemCode.VALIDATION_ERROR)}}},
    "then": {"required": ["errors"]},
}

FIELD_ERROR: Schema = {
    "type": "object",
    "description": "One wrong field; its value is never repeated.",
    "required": ["field", "code", "detail"],
    "properties": {
        "field": {"type": "string", "description": "The name of the field."},
        "code": {"type": "string", "description": "`required`, `null`, `invalid`, …"},
        "detail": {"type": "string", "description": "Human-readable explanation."},
    },
}

COMPONENTS: Schema = {"schemas": {"Problem": PROBLEM, "FieldError": FIELD_ERROR}}


def problem_schema(*codes: ProblemCode) -> Schema:
    """The schema of a problem with one of these codes, which share a status."""
    return {
        "allOf": [
            {"$ref": PROBLEM_REF},
            {
                "properties": {
                    "status": {"const": int(_status(*codes))},
                    "code": {"enum": [str(code) for code in codes]},
                }
            },
        ]
    }


def problem_description(*codes: ProblemCode) -> str:
    return "\n\n".join(f"`{code}`: {meaning(code).detail}" for code in codes)


def problem_example(code: ProblemCode) -> Schema:
    """The document of a problem with the default detail."""
    status, title, detail = meaning(code)
    example: Schema = {
        "type": f"urn:moonhook:problem:{code}",
        "title": title,
        "status": int(status),
        "detail": detail,
        "code": str(code),
        "requestId": _REQUEST_ID,
    }
    if code is ProblemCode.VALIDATION_ERROR:
        error = {"field": "uid", "code": "required", "detail": "This field is required."}
        example["errors"] = [error]
    return example


def problem_answer(*codes: ProblemCode, headers: Schema | None = None) -> tuple[str, Schema]:
    """The status and response object of a problem, for an OpenAPI ``responses`` object."""
    examples = {str(code): {"value": problem_example(code)} for code in codes}
    return str(int(_status(*codes))), {
        "description": problem_description(*codes),
        "headers": ANSWER_HEADERS | NO_STORE | (headers or {}),
        "content": {CONTENT_TYPE: {"schema": problem_schema(*codes), "examples": examples}},
    }


def header(description: str, *, required: bool = True, **schema: Any) -> Schema:
    """A header object; its value is a string unless ``schema`` says otherwise."""
    return {
        "description": description,
        "required": required,
        "schema": {"type": "string"} | schema,
    }


ANSWER_HEADERS: Schema = {
    HEADER: header("Identifies the request in the log.", pattern="^[0-9a-f]{32}$"),
}
NO_STORE: Schema = {"Cache-Control": header("The response is never cached.", const="no-store")}
RETRY_AFTER: Schema = {
    "Retry-After": header("Seconds to wait before a retry.", type="integer", minimum=1)
}


def allow_header(*methods: str) -> Schema:
    return {"Allow": header("The allowed methods.", const=", ".join(methods))}


def _status(*codes: ProblemCode) -> HTTPStatus:
    [status] = {meaning(code).status for code in codes}
    return status
