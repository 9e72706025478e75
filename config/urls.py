"""All URLs but those under /hook/, which have a WSGI application of their own.

So has ``GET /session``, in most cases: see ``sessions_api.wsgi``.
"""

from django.contrib import admin
from django.urls import path, re_path
from django.views.generic import RedirectView

import sessions_api.urls
from config.api.blobs import blob
from config.api.endpoints import (
    admin_graphql,
    serve_admin_schema,
    serve_openapi,
    serve_user_schema,
    user_graphql,
)
from config.operations.readiness import healthz, readyz
from core.http.metrics import metrics
from core.http.problem_handlers import no_such_path

urlpatterns = [
    *sessions_api.urls.urlpatterns,
    path("user/graphql", user_graphql, name="user-graphql"),
    path("user/schema.graphql", serve_user_schema, name="user-schema"),
    # Before the admin, which would treat the URLs as pages.
    path("admin/graphql", admin_graphql, name="admin-graphql"),
    path("admin/blobs/<str:digest>", blob, name="blob"),
    path("admin/schema.graphql", serve_admin_schema, name="admin-schema"),
    re_path(r"^admin/(?:graphql|schema\.graphql|blobs)/", no_such_path),
    path("admin/", admin.site.urls),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("openapi.json", serve_openapi, name="openapi"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "core.http.problem_handlers.bad_request"
handler403 = "core.http.problem_handlers.permission_denied"
handler404 = "core.http.problem_handlers.not_found"
handler500 = "core.http.problem_handlers.server_error"
