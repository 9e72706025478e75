"""Pages of other origins that call a hook by its URL: preflights, and headers of replies.

By the Fetch standard (CORS protocol), never with credentials: the token is in the URL. A hook
without ``allowed_origins`` has none of this.
"""

import re
from collections.abc import Iterable

from hooks.edge.http import CallRequest, CallResponse
from hooks.rules import CallRules

REQUESTED_METHOD = "Access-Control-Request-Method"
REQUESTED_HEADERS = "Access-Control-Request-Headers"
MAX_AGE_SECONDS = 600
_PREFIX = "access-control-"
_EXPOSED = "Moonhook-Run-Id, Moonhook-Duplicate-Of, Preference-Applied, Retry-After, X-Request-Id"
_MAX_HEADERS_CHARACTERS = 1_000
_NAME = r"[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*"
_NAMES = re.compile(rf"{_NAME}(,{_NAME})*")


def is_preflight(request: CallRequest) -> bool:
    """Whether a browser asks, before a page's call, whether it may send it."""
    return request.method == "OPTIONS" and request.header(REQUESTED_METHOD) is not None


def allowed_origin(request: CallRequest, rules: CallRules | None) -> str | None:
    """The origin of the page that calls, if the hook allows it."""
    origin = request.header("Origin")
    is_allowed = rules is not None and origin is not None and origin in rules.allowed_origins
    return origin if is_allowed else None


def preflight_response(request: CallRequest, origin: str, methods: Iterable[str]) -> CallResponse:
    """204 with what the page may send: the hook's methods, and the headers that it asks for."""
    asked = request.header(REQUESTED_HEADERS) or ""
    headers = [
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Allow-Methods", ", ".join(methods)),
        ("Access-Control-Max-Age", str(MAX_AGE_SECONDS)),
        ("Vary", f"Origin, {REQUESTED_METHOD}, {REQUESTED_HEADERS}"),
    ]
    if len(asked) <= _MAX_HEADERS_CHARACTERS and _NAMES.fullmatch(asked):
        headers.append(("Access-Control-Allow-Headers", asked.strip()))
    return CallResponse(204, headers, b"")


def readable_by_page(
    response: CallResponse, rules: CallRules | None, origin: str | None
) -> CallResponse:
    """The response with our headers for the page. They win over the script's."""
    if rules is None or not rules.allowed_origins:
        return response
    theirs = list(response.headers)
    headers = [each for each in theirs if not each[0].lower().startswith(_PREFIX)]
    varies = [value for name, value in headers if name.lower() == "vary"]
    headers = [each for each in headers if each[0].lower() != "vary"]
    headers.append(("Vary", ", ".join([*varies, "Origin"])))
    if origin is not None:
        headers += [
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", _EXPOSED),
        ]
    return response._replace(headers=headers)
