"""What the template of a row's page shows besides the form."""

from typing import Any

from django.http import HttpRequest, HttpResponse


class PageContext:
    """Mixin for model admins whose rows' pages show more than the form."""

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def change_view(
        self: Any,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        context = {**(extra_context or {}), **self.page_context(request, row)}
        response: HttpResponse = super().change_view(request, object_id, form_url, context)  # type: ignore[misc]
        return response
