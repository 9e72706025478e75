"""Pages that show a secret once: the page, how long the old one stays good, commands to paste."""

import json
import shlex
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib.admin import ModelAdmin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminSelectWidget


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


_CHOICES = {
    "Revoke immediately": timedelta(),
    "1 hour": timedelta(hours=1),
    "1 day": timedelta(days=1),
    "7 days": timedelta(days=7),
}


class OverlapForm(forms.Form):
    """How long the old token or secret works after a rotation."""

    overlap_seconds = forms.TypedChoiceField(
        coerce=int,
        choices=[(int(time.total_seconds()), name) for name, time in _CHOICES.items()],
        widget=UnfoldAdminSelectWidget,
        help_text=("Both work until then. Choose “Revoke immediately” if the old one has leaked."),
    )

    def __init__(self, *args: Any, subject: str = "secret", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["overlap_seconds"].label = f"Keep old {subject} valid for"


def curl(address: str, *options: tuple[str, ...]) -> str:
    """A call of curl, each group of options on a line of its own."""
    words = [("curl", "-sS", address), *options]
    return " \\\n  ".join(shlex.join(group) for group in words)


def json_body(value: object) -> tuple[tuple[str, ...], ...]:
    """The options that send it."""
    return ("-H", "Content-Type: application/json"), ("-d", json.dumps(value, ensure_ascii=False))
