"""The WSGI application. Each gunicorn worker loads it before its first request."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

# Models can be imported only after the application is set up.
from config.operations.threads import build_shared_objects  # noqa: E402

build_shared_objects()
