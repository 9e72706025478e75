"""A JSON object out of a request, strictly."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from core.http.body import BodyIncomplete, BodyTooLarge, read_body
from core.http.problems import Problem, ProblemCode


def json_object(request: HttpRequest) -> dict[str, Any]:
    """The body: ``application/json`` in UTF-8, at most ``REST_MAX_BODY_BYTES``, an object.

    REST framework's own parsers are passed by because they take a chunked body for an empty one.
    Raises ``Problem``.
    """
    if request.content_type != "application/json":
        raise Problem(ProblemCode.UNSUPPORTED_MEDIA_TYPE)
    try:
        body = read_body(request, settings.REST_MAX_BODY_BYTES)
        document = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except BodyTooLarge:
        raise Problem(
            ProblemCode.BODY_TOO_LARGE,
            f"The body may have at most {settings.REST_MAX_BODY_BYTES} bytes.",
        ) from None
    except (BodyIncomplete, ValueError, RecursionError):
        raise Problem(ProblemCode.MALFORMED_BODY) from None
    if not isinstance(document, dict):
        raise Problem(ProblemCode.MALFORMED_BODY)
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
