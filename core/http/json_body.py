"""The strict JSON reader of every endpoint that takes an object, and its use for REST bodies."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from core.http.body import BodyIncomplete, BodyTooLarge, read_body
from core.http.problems import Problem, ProblemCode


class MalformedJson(ValueError):
    """The body is not JSON in UTF-8, or not an object."""


class NotAnObject(MalformedJson):
    """The body is JSON, but not an object."""


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse one JSON object in UTF-8, by RFC 8259 alone: no NaN, Infinity or byte order mark.

    Strings may hold lone surrogates (``"\\ud800"``), which cannot be encoded: a caller that names
    the wrong field checks them there.

    Raises ``MalformedJson``; ``NotAnObject`` for other JSON values.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedJson("The body is not JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise NotAnObject("The body must be one JSON object.")
    return value


def read_json_object(request: HttpRequest) -> dict[str, Any]:
    """Read the ``application/json`` body of a REST request, of at most ``REST_MAX_BODY_BYTES``.

    Replaces REST framework's parsers, which take a chunked body for an empty one.

    Raises ``Problem``.
    """
    if request.content_type != "application/json":
        raise Problem(ProblemCode.UNSUPPORTED_MEDIA_TYPE)
    try:
        return parse_json_object(read_body(request, settings.REST_MAX_BODY_BYTES))
    except BodyTooLarge:
        raise Problem(
            ProblemCode.BODY_TOO_LARGE,
            f"The body may have at most {settings.REST_MAX_BODY_BYTES} bytes.",
        ) from None
    except (BodyIncomplete, MalformedJson):
        raise Problem(ProblemCode.MALFORMED_BODY) from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
