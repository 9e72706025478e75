"""Forms that create or rotate a secret, and commands to paste that use it."""

import json
import shlex
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from unfold.widgets import UnfoldAdminSelectWidget

_OVERLAPS = {
    "Revoke immediately": timedelta(),
    "1 hour": timedelta(hours=1),
    "1 day": timedelta(days=1),
    "7 days": timedelta(days=7),
}


class IssuedOnAdd:
    """Mixin for admins whose add form ends on a show-once page, and so has a single button."""

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
            context |= {"issue_button": self.issue_button, "title": self.issue_button}
        response: HttpResponse = super().render_change_form(  # type: ignore[misc]
            request, context, add, change, form_url, obj
        )
        return response


class OverlapForm(forms.Form):
    """How long the old token or secret works after a rotation."""

    overlap_seconds = forms.TypedChoiceField(
        coerce=int,
        choices=[(int(time.total_seconds()), name) for name, time in _OVERLAPS.items()],
        initial=int(timedelta(days=1).total_seconds()),
        widget=UnfoldAdminSelectWidget,
        help_text=("Both work until then. Choose “Revoke immediately” if the old one has leaked."),
    )

    announced = forms.CharField(required=False, widget=forms.HiddenInput)
    """The end of an earlier overlap that the question announced, which the rotation cuts short."""

    def __init__(self, *args: Any, label: str, announced: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["overlap_seconds"].label = label
        self.fields["announced"].initial = announced


def curl(address: str, *options: tuple[str, ...]) -> str:
    """Returns a curl command with each group of options on its own line."""
    words = [("curl", "-sS", address), *options]
    return " \\\n  ".join(shlex.join(group) for group in words)


def json_body(value: object) -> tuple[tuple[str, ...], ...]:
    """Returns curl's options for a JSON body."""
    return ("-H", "Content-Type: application/json"), ("-d", json.dumps(value, ensure_ascii=False))
