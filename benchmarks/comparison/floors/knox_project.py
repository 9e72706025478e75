"""Django REST framework with django-rest-knox: a view that asks for a token, and nothing else.

`python -m benchmarks.comparison.floors.knox_project` migrates its database and prints a token.
"""

import os

import environ
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import path

DATABASE = environ.Env.db_url_config(os.environ["DATABASE_URL"])
if DATABASE["ENGINE"] == "django.db.backends.sqlite3":
    # As Moonhook has them.
    DATABASE["CONN_MAX_AGE"] = None
    DATABASE["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    DATABASE["OPTIONS"] = {"pool": {"min_size": 1, "max_size": 20}}

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": DATABASE},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "rest_framework",
        "knox",
    ],
    MIDDLEWARE=[],
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": ["knox.auth.TokenAuthentication"],
        "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    },
    ROOT_URLCONF=__name__,
    SECRET_KEY="only for benchmarks",
    USE_TZ=True,
)
application = get_wsgi_application()

from django.contrib.auth.models import User  # noqa: E402
from knox.models import AuthToken  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from benchmarks.comparison.floors.session_document import SESSION  # noqa: E402


class SessionView(APIView):
    def get(self, request: Request) -> Response:
        user = {"id": str(request.user.pk), "email": request.user.email, "name": "Alice"}
        expires_at = request.auth.expiry.isoformat()
        return Response(SESSION | {"user": user, "expiresAt": expires_at})


urlpatterns = [path("session", SessionView.as_view())]


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    alice = User.objects.create_user("alice", "alice@example.com")
    _, token = AuthToken.objects.create(alice)
    print(token)
