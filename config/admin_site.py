"""The admin's site: Unfold's, for staff."""

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.sites import UnfoldAdminSite


class MoonhookAdminSite(UnfoldAdminSite):
    """Where administrators work."""

    index_title = "Home"
    index_template = "admin/home.html"

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        # The models' modules are loaded after the site, which apps find while they start.
        from config.admin_home import home  # noqa: PLC0415

        context = {**(extra_context or {}), "home": home(request, self)}
        response: TemplateResponse = super().index(request, context)
        return response
