"""Shows the call tokens that a plan has made, once, to the login that applied it."""

import json
from collections.abc import Callable, Sequence
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_GET

from accounts.admin.tenancy import TenantModelAdmin
from core.admin import shown_once
from core.admin.links import page_of
from scripts_engine.models import Release
from scripts_engine.releases.kinds import Issued

# By the kind of object: where it is called with the secret.
_addresses: dict[str, Callable[[UUID, str], str]] = {}


def register_address(kind: str, address: Callable[[UUID, str], str]) -> None:
    """``address`` gives the address to call from an object's id and its secret."""
    _addresses[kind] = address


def keep_issued(request: HttpRequest, release: Release, issued: Sequence[Issued]) -> None:
    secrets = {str(each.object_id): each.secret for each in issued}
    shown_once.keep(request, _name(release), json.dumps(secrets))


class IssuedPages(TenantModelAdmin):
    def get_urls(self) -> list[URLPattern]:
        issued = path(
            "<path:object_id>/issued/",
            self.admin_site.admin_view(require_GET(self.issued_view)),
            name="scripts_engine_release_issued",
        )
        return [issued, *super().get_urls()]

    def issued_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        release: Release = self.get_or_404(request, object_id)
        kept = shown_once.take(request, _name(release))
        secrets = json.loads(kept) if kept else {}
        made = release.changes.filter(object_id__in=list(secrets)).order_by("place")
        response = TemplateResponse(
            request,
            "admin/issued_release.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "original": release,
                "title": "New hooks",
                "addresses": [
                    (row.name, _addresses[row.kind](row.object_id, secrets[str(row.object_id)]))
                    for row in made
                ],
                "kept_minutes": int(shown_once.KEPT_FOR.total_seconds() // 60),
                "done": page_of(release),
            },
        )
        response["Cache-Control"] = "no-store"
        return response


def _name(release: Release) -> str:
    return f"call tokens of release {release.pk}"
