"""Admins of rows with a rotating secret: rotating asks first, and a new secret is shown once."""

from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.timesince import timeuntil
from django.views.decorators.http import require_GET

from accounts.models import RotatingSecret
from core.admin import shown_once
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.issuing import IssuedOnAdd, OverlapForm
from core.admin.links import action_of


class RotatingSecretAdmin(IssuedOnAdd):
    """Mixin for model admins. The subclass declares the button and action that rotate."""

    credential: ClassVar[str]
    """What the secret is called: “secret”, “call token”."""
    issued_title: ClassVar[str]
    """The title of the page that shows the first secret of a new row."""
    issued_template: ClassVar[str]
    rotate_question: ClassVar[Question]
    overlap_label: ClassVar[str]

    def rotate_row(
        self, request: HttpRequest, row: Any, overlap_seconds: int
    ) -> tuple[RotatingSecret, str]:
        """Rotates through the flow; returns the row and its new secret."""
        raise NotImplementedError

    def issued_context(self, request: HttpRequest, row: Any, secret: str) -> dict[str, object]:
        """The context of ``issued_template``, apart from the title."""
        raise NotImplementedError

    def is_rotatable(self, row: Any) -> bool:
        return True

    def get_urls(self: Any) -> list[URLPattern]:
        issued = self.admin_site.admin_view(require_GET(self.issued_view))
        name = f"{self.opts.app_label}_{self.opts.model_name}_issued"
        return [
            path("<path:object_id>/issued/", issued, name=name),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def ask_and_rotate(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        """The question or, once it is confirmed, a redirect to the new secret."""
        row = self.get_or_404(request, object_id)
        is_rotating = is_confirmed(request)
        if is_rotating and not _is_announced(request, row.previous_good_until):
            # The row was rotated after the question was asked. If it was by this login, a second
            # click has sent the form twice.
            if shown_once.is_kept(request, row.secret_name):
                return redirect(action_of(row, "issued"))
            is_rotating = False
        form = OverlapForm(
            request.POST if is_rotating else None,
            label=self.overlap_label,
            announced=_announced(row.previous_good_until),
        )
        if not form.is_valid():
            warning = _warning(self.credential, row.previous_good_until)
            return ask(self, request, self.rotate_question._replace(warning=warning), [row], form)
        rotated, secret = self.rotate_row(request, row, form.cleaned_data["overlap_seconds"])
        self.log_change(request, rotated, f"Rotated the {self.credential}.")
        return self.redirect_to_secret(request, rotated, secret)

    def redirect_to_secret(
        self, request: HttpRequest, row: RotatingSecret, secret: str
    ) -> HttpResponse:
        shown_once.keep(request, row.secret_name, secret)
        return redirect(action_of(row, "issued"))

    def issued_view(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        """Shows the secret to the login that created it, once."""
        row = self.get_or_404(request, object_id)
        secret = shown_once.take(request, row.secret_name)
        return self._shown(request, row, secret) if secret else self._not_shown(request, row)

    def _shown(self: Any, request: HttpRequest, row: Any, secret: str) -> HttpResponse:
        rotated = f"{self.credential.capitalize()} rotated"
        title = rotated if row.previous_digest else self.issued_title
        context = {"title": title, **self.issued_context(request, row, secret)}
        return self._page(request, row, self.issued_template, context)

    def _not_shown(self: Any, request: HttpRequest, row: Any) -> HttpResponse:
        context = {
            "title": f"{self.credential.capitalize()} cannot be shown again",
            "credential": self.credential,
            "kept_minutes": int(shown_once.KEPT_FOR.total_seconds() // 60),
            "rotate": action_of(row, "rotate") if self.is_rotatable(row) else "",
            "done": action_of(row, "change"),
        }
        return self._page(request, row, "admin/not_shown_again.html", context)

    def _page(
        self: Any, request: HttpRequest, row: Any, template: str, context: dict[str, object]
    ) -> HttpResponse:
        response = TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "original": row,
                **context,
            },
        )
        response["Cache-Control"] = "no-store"
        return response


def _announced(until: datetime | None) -> str:
    return "" if until is None else until.isoformat()


def _is_announced(request: HttpRequest, until: datetime | None) -> bool:
    """Whether the question said that the rotation ends the overlap that is running now."""
    return until is None or request.POST.get("announced") == _announced(until)


def _warning(credential: str, until: datetime | None) -> str:
    if until is None:
        return ""
    return (
        f"The previous {credential} is still valid until {until:%Y-%m-%d %H:%M} UTC "
        f"({timeuntil(until)} from now). If you rotate now, it stops working immediately."
    )
