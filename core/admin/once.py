"""Pages that show a secret once."""

from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


def show_once(
    model_admin: ModelAdmin[Any], request: HttpRequest, template: str, context: dict[str, Any]
) -> TemplateResponse:
    """The page, as the answer to the very POST that made the secret.

    Neither a message nor a redirect: both would keep the secret somewhere, in a cookie, a
    session's row or an address.
    """
    response = TemplateResponse(
        request,
        template,
        {**model_admin.admin_site.each_context(request), "opts": model_admin.opts, **context},
    )
    response["Cache-Control"] = "no-store"
    return response


class IssuedOnAdd:
    """For a model admin whose form for a new row ends on such a page: it has one button."""

    issue_button: ClassVar[str]

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Model | None = None,
    ) -> HttpResponse:
        if add:
            context["issue_button"] = self.issue_button
        response: HttpResponse = super().render_change_form(  # type: ignore[misc]
            request, context, add, change, form_url, obj
        )
        return response
