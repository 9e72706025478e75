"""The WSGI application. Each gunicorn worker loads it before its first request."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django = get_wsgi_application()

# Models can be imported only after the application is set up.
from config.operations.threads import build_shared_objects  # noqa: E402
from hooks.wsgi import PREFIX, HooksApplication  # noqa: E402
from sessions_api.wsgi import LookUps  # noqa: E402

_hooks = HooksApplication()
_look_ups = LookUps()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"].startswith(PREFIX):
        return _hooks(environ, start_response)
    if _look_ups.take(environ):
        return _look_ups(environ, start_response)
    return _django(environ, start_response)


build_shared_objects()
