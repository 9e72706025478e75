"""What gunicorn serves: each worker loads it by itself, before its first request."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

# Models can be imported only now.
from config.operations.threads import build_what_threads_share  # noqa: E402

build_what_threads_share()
