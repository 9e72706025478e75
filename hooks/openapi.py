"""The webhook addresses for the OpenAPI document."""

from core.http.openapi import (
    ANSWER_HEADERS,
    RETRY_AFTER,
    Schema,
    allow_header,
    header,
    problem_answer,
)
from core.http.problems import ProblemCode

_BASIC = "hookCredentials"
_RUN_ID = {
    "Moonhook-Run-Id": header("Names the run.", required=False, format="uuid"),
}
_PROTECTION = {
    "X-Content-Type-Options": header("No guessing of types.", const="nosniff"),
    "Content-Security-Policy": header("A script's page is nobody's origin.", const="sandbox"),
    "Referrer-Policy": header("Addresses hold tokens.", const="no-referrer"),
}
_HEADERS = ANSWER_HEADERS | _PROTECTION
_CHALLENGE = {"WWW-Authenticate": header("RFC 7617.", const='Basic realm="hooks", charset="UTF-8"')}


def _optional(headers: Schema) -> Schema:
    """They stand in our answer, but not in a script's with the same status."""
    return {name: described | {"required": False} for name, described in headers.items()}


_SCRIPTS_OWN: Schema = {"*/*": {"schema": {}}}


def _problem(*codes: ProblemCode, headers: Schema | None = None) -> tuple[str, Schema]:
    """A problem of ours; a script may choose the same status for a reply of its own."""
    status, answer = problem_answer(*codes, headers=_PROTECTION | _RUN_ID | (headers or {}))
    answer["headers"].pop("Cache-Control")
    return status, answer | {"content": answer["content"] | _SCRIPTS_OWN}


# What a call may come to once it was let in.
_OUTCOMES: Schema = {
    "default": {
        "description": (
            "The script's reply: 200 without a body when it returns nothing, `text/plain` for a "
            "string, `application/json` for other values, and with `Reply{…}` what it says."
        ),
        "headers": _HEADERS | _RUN_ID,
        "content": _SCRIPTS_OWN,
    },
    **dict(
        [
            _problem(ProblemCode.INVALID_REQUEST, ProblemCode.MALFORMED_BODY),
            _problem(ProblemCode.BODY_TOO_LARGE),
            _problem(
                ProblemCode.INTERNAL_ERROR,
                ProblemCode.SCRIPT_FAILED,
                ProblemCode.SCRIPT_OUT_OF_MEMORY,
                ProblemCode.REPLY_TOO_LARGE,
            ),
            _problem(
                ProblemCode.BUSY,
                ProblemCode.UNAVAILABLE,
                ProblemCode.RUN_NOT_RECORDED,
                headers=_optional(RETRY_AFTER),
            ),
            _problem(ProblemCode.SCRIPT_TIMED_OUT),
        ]
    ),
}


def _parameter(name: str, description: str, **schema: str) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string"} | schema,
    }


_ADDRESS = [
    _parameter("organisation", "The organisation's id.", format="uuid"),
    _parameter("script", "The script's id.", format="uuid"),
    _parameter("token", "The hook's call token.", pattern="^mhc_[0-9A-Za-z]{46}$"),
]
_BODY = {
    "description": "Up to 1 MiB of any content type; the script sees the bytes as they came.",
    "required": False,
    "content": {"*/*": {"schema": {}}},
}


def _call(operation_id: str, summary: str, responses: Schema, **more: object) -> Schema:
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["hook"],
        "security": [{}],
        "responses": responses | _OUTCOMES,
    } | more


_BY_URL = dict(
    [
        _problem(ProblemCode.NOT_FOUND),
        _problem(
            ProblemCode.METHOD_NOT_ALLOWED, headers=_optional(allow_header("GET", "HEAD", "POST"))
        ),
    ]
)
_BY_BASIC_AUTH = dict(
    [
        _problem(ProblemCode.INVALID_CREDENTIALS, headers=_optional(_CHALLENGE)),
        _problem(ProblemCode.METHOD_NOT_ALLOWED, headers=_optional(allow_header("POST"))),
    ]
)

PATHS: Schema = {
    "/hook/{organisation}/{script}/{token}": {
        "get": _call("callHook", "Run the script", _BY_URL, parameters=_ADDRESS),
        "head": {
            "operationId": "probeHook",
            "summary": "Tell whether the address is right; nothing runs",
            "tags": ["hook"],
            "security": [{}],
            "parameters": _ADDRESS,
            "responses": {
                "200": {"description": "It is right.", "headers": _HEADERS},
                "404": {"description": "It is not.", "headers": _HEADERS},
            },
        },
        "post": _call(
            "callHookWithBody",
            "Run the script with a body",
            _BY_URL,
            parameters=_ADDRESS,
            requestBody=_BODY,
        ),
    },
    "/hook/secure/{organisation}/{script}": {
        "post": _call(
            "callSecureHook",
            "Run the script, by HookID and call token",
            _BY_BASIC_AUTH,
            parameters=_ADDRESS[:2],
            requestBody=_BODY,
            security=[{_BASIC: []}],
        ),
    },
}

SECURITY_SCHEMES: Schema = {
    _BASIC: {
        "type": "http",
        "scheme": "basic",
        "description": "The HookID is the user, the call token (`mhc_…`) the password.",
    }
}
