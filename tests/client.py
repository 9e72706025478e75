"""Django's test client, whose calls of hooks and look-ups of sessions go the way of a server's."""

from typing import Any

import django.test
from django.core.servers.basehttp import get_internal_wsgi_application
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.test.client import ClientHandler, conditional_content_removal


class Client(django.test.Client):
    def __init__(self, enforce_csrf_checks: bool = False, **options: Any) -> None:
        super().__init__(enforce_csrf_checks, **options)
        self.handler = _Handler(enforce_csrf_checks)


class _Handler(ClientHandler):
    def __call__(self, environ: dict[str, Any]) -> Any:
        # More than what leaves Django's way, so that tests see where the application parts them.
        is_hook = environ["PATH_INFO"].startswith(("/hook", "//hook"))
        is_get = environ["REQUEST_METHOD"] == "GET"
        if not is_hook and not (is_get and environ["PATH_INFO"].startswith("/session")):
            return super().__call__(environ)
        response = HttpResponse()

        def start_response(status: str, headers: list[tuple[str, str]]) -> None:
            assert len({name.lower() for name, _ in headers}) == len(headers)
            code, _, response.reason_phrase = status.partition(" ")
            response.status_code = int(code)
            del response["Content-Type"]
            for name, value in headers:
                response[name] = value

        # Django's handler connects it after each request; config.apps disconnects it.
        request_started.disconnect(close_old_connections)
        body: Any = get_internal_wsgi_application()(environ, start_response)
        response.content = b"".join(body)
        # Closes no connection within a test's transaction, like Django's client.
        request_finished.disconnect(close_old_connections)
        body.close()
        request_finished.connect(close_old_connections)
        request = HttpRequest()
        request.method = environ["REQUEST_METHOD"]
        response.wsgi_request = request  # type: ignore[attr-defined]
        return conditional_content_removal(request, response)  # type: ignore[arg-type]
