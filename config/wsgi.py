"""The WSGI application. The web server loads it once, and its workers are forks."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django = get_wsgi_application()

# Models can be imported only after the application is set up.
from hooks.edge.wsgi import PREFIX, HooksApplication  # noqa: E402
from sessions_api.wsgi import LookUps  # noqa: E402

_hooks = HooksApplication()
_look_ups = LookUps()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"].startswith(PREFIX):
        return _hooks(environ, start_response)
    if _look_ups.take(environ):
        return _look_ups(environ, start_response)
    return _django(environ, start_response)


# What is imported now, workers need not import one by one.
get_resolver().url_patterns  # noqa: B018
engines.all()
