"""The OpenAPI document of the REST and webhook doors, and its address."""

import json
from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings

from core.http.openapi import COMPONENTS
from core.http.problem_handlers import safe_methods_only
from hooks.openapi import PATHS, SECURITY_SCHEMES

CONTENT_TYPE = "application/vnd.oai.openapi+json;version=3.1"

_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "Moonhook",
    "VERSION": "1",
    "DESCRIPTION": "Sessions, and webhooks that run scripts.",
    "TAGS": [
        {"name": "session", "description": "For people and programs."},
        {"name": "hook", "description": "For machines: a call runs a script."},
    ],
    "APPEND_PATHS": PATHS,
    "APPEND_COMPONENTS": {**COMPONENTS, "securitySchemes": SECURITY_SCHEMES},
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enum_id_removal"],
}
_PATTERNS = [path("", include("sessions_api.urls"))]


def _openapi_json() -> str:
    with patched_settings(_SETTINGS):
        document: dict[str, Any] = SchemaGenerator(patterns=_PATTERNS).get_schema(public=True)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# The document, the same on every installation. Made while the project is loaded, by one thread:
# the patched settings are the whole process's.
OPENAPI_JSON = _openapi_json()
_ETAG = f'"{sha256(OPENAPI_JSON.encode()).hexdigest()}"'


@safe_methods_only
@cache_control(public=True, max_age=3600)
@condition(etag_func=lambda request: _ETAG)
def serve_openapi(request: HttpRequest) -> HttpResponse:
    """The document, for anybody and for caches."""
    return HttpResponse(OPENAPI_JSON, content_type=CONTENT_TYPE)
