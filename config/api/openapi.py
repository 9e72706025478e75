"""GET /openapi.json: the OpenAPI document of the REST and webhook endpoints.

The document is written by hand; the conformance tests compare it with the server.
"""

from hashlib import sha256

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition

from core.http.problem_handlers import safe_methods_only

CONTENT_TYPE = "application/vnd.oai.openapi+json;version=3.1"

_DOCUMENT = (settings.BASE_DIR / "docs/openapi.json").read_bytes()
_ETAG = f'"{sha256(_DOCUMENT).hexdigest()}"'


@safe_methods_only
@cache_control(public=True, max_age=3600)
@condition(etag_func=lambda request: _ETAG)
def serve_openapi(request: HttpRequest) -> HttpResponse:
    """Serve the document to everyone, caches included."""
    return HttpResponse(_DOCUMENT, content_type=CONTENT_TYPE)
