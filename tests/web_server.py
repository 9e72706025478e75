"""The web server without a supervisor: `python -m tests.web_server [module:application]`."""

import os
import sys

import django
from django.conf import settings
from gunicorn.util import import_app


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    # Models can be imported only after the application is set up.
    from core.server.arbiter import WebServer  # noqa: PLC0415
    from core.server.listeners import reserve  # noqa: PLC0415

    server = WebServer(settings.BASE_DIR / "config" / "gunicorn.conf.py")
    for application in sys.argv[1:]:
        server.callable = import_app(application)
    server.serve(reserve(settings.BIND, settings.PORT, count=settings.WEB_WORKERS))


if __name__ == "__main__":
    main()
