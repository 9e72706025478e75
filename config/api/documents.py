"""The interface's descriptions, which everyone may read: OpenAPI and the GraphQL schemas.

The OpenAPI document is written by hand; the conformance tests compare it with the server. The
schemas are written by ``manage.py export_schemas``.
"""

from hashlib import sha256

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition

from core.http.problem_handlers import View, safe_methods_only


def _serving(path: str, content_type: str) -> View:
    """A view of the file in ``docs``, which caches may keep for an hour."""
    content = (settings.BASE_DIR / "docs" / path).read_bytes()
    etag = f'"{sha256(content).hexdigest()}"'

    @safe_methods_only
    @cache_control(public=True, max_age=3600)
    @condition(etag_func=lambda request: etag)
    def serve(request: HttpRequest) -> HttpResponseBase:
        return HttpResponse(content, content_type=content_type)

    return serve


serve_openapi = _serving("openapi.json", "application/vnd.oai.openapi+json;version=3.1")
serve_admin_schema = _serving("schemas/admin.graphql", "text/plain; charset=utf-8")
serve_user_schema = _serving("schemas/user.graphql", "text/plain; charset=utf-8")
