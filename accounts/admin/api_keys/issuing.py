"""Creating an API key and rotating its secret; the secret is shown once."""

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.admin.api_keys.commands import commands_of
from accounts.admin.reach import person
from accounts.admin.rotating_secrets import RotatingSecretAdmin
from accounts.flows.api_keys import IssuedApiKey, issue_api_key, rotate_api_key
from accounts.models import ApiKey
from accounts.networks import canonical_networks
from core.admin.confirmation import Question
from core.admin.display import action
from core.admin.links import page_of
from core.http.origin import origin_of

_ROTATE = Question(
    title="Rotate secret",
    consequences=(
        "The key gets a new secret, shown once on the next page. Open sessions stay open; if the "
        "secret leaked, revoke the key instead."
    ),
    button="Rotate",
)


class CreateApiKeyForm(forms.ModelForm[ApiKey]):
    allowed_networks = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=(
            "Networks or addresses that may use the key, one per line, such as 192.0.2.0/24 or "
            "2001:db8::1. Leave empty to allow any."
        ),
    )

    def clean_allowed_networks(self) -> list[str]:
        return canonical_networks(self.cleaned_data["allowed_networks"].split())

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError("This time is in the past.", code="invalid")
        return expires_at


class ApiKeyIssuing(RotatingSecretAdmin):
    """Mixin for the model admin of API keys."""

    issue_button = "Create API key"
    credential = "secret"
    issued_title = "API key created"
    issued_template = "admin/issued_api_key.html"
    rotate_question = _ROTATE
    overlap_label = "Keep old secret valid for"
    form = CreateApiKeyForm

    def save_model(
        self, request: HttpRequest, obj: ApiKey, form: forms.ModelForm[ApiKey], change: bool
    ) -> None:
        issued = issue_api_key(
            obj.organisation,
            name=obj.name,
            expires_at=obj.expires_at,
            allowed_networks=obj.allowed_networks,
            created_by=person(request),
            origin=origin_of(request),
        )
        obj.pk = issued.api_key.pk
        obj.refresh_from_db()
        request.issued = issued  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        issued: IssuedApiKey = request.issued  # type: ignore[attr-defined]
        return self.redirect_to_secret(request, *issued)

    def has_rotate_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        return object_id is not None and bool(self.has_end_permission(request, object_id))

    @action(
        description="Rotate secret",
        permissions=["rotate"],
        variant=ActionVariant.WARNING,
        icon="sync",
    )
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        response: HttpResponse = self.ask_and_rotate(request, object_id)
        return response

    def rotate_row(
        self, request: HttpRequest, row: ApiKey, overlap_seconds: int
    ) -> tuple[ApiKey, str]:
        return rotate_api_key(
            row, overlap_seconds=overlap_seconds, origin=origin_of(request), by=person(request)
        )

    def is_rotatable(self, row: ApiKey) -> bool:
        return row.revoked_at is None

    def issued_context(self, row: ApiKey, secret: str) -> dict[str, object]:
        return {
            "api_key": row,
            "secret": secret,
            "commands": commands_of(row, secret),
            "previous_until": row.previous_good_until,
            "done": page_of(row),
        }
