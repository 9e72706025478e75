"""A WSGI application for tests that reads as much of each body as the query says."""

from collections.abc import Callable
from itertools import count
from typing import Any

from django.core.wsgi import get_wsgi_application

# The worker's own services need Django.
get_wsgi_application()

_numbers = count(1)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Answers with the number of the request."""
    number = next(_numbers)
    wanted = int(environ["QUERY_STRING"] or 0)
    read_bytes = 0
    while read_bytes < wanted and (data := environ["wsgi.input"].read(wanted - read_bytes)):
        read_bytes += len(data)
    answer = str(number).encode()
    headers = [("Content-Length", str(len(answer)))]
    start_response("200 OK", [] if environ["PATH_INFO"] == "/chunked" else headers)
    return [answer]
