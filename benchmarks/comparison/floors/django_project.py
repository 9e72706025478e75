"""A Django project of two views: no middleware, no database, no log."""

import json
from hmac import compare_digest

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.urls import path

from benchmarks.comparison.floors.session_document import SESSION
from benchmarks.comparison.order import TOKEN

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=[],
    ROOT_URLCONF=__name__,
    SECRET_KEY=TOKEN,
)


def answer(document: object) -> HttpResponse:
    """With its length, which Django's middleware would add; without one it is sent in chunks."""
    body = json.dumps(document)
    return HttpResponse(
        body, content_type="application/json", headers={"Content-Length": str(len(body))}
    )


def hook(request: HttpRequest, token: str) -> HttpResponse:
    if not compare_digest(token.encode(), TOKEN.encode()):
        return HttpResponseForbidden()
    order = json.loads(request.body)
    total = sum(item["qty"] * item["price"] for item in order["items"])
    return answer({"id": order["id"], "total": total})


def session(request: HttpRequest) -> HttpResponse:
    return answer(SESSION)


urlpatterns = [path("hook/<str:token>", hook), path("session", session)]

application = get_wsgi_application()
