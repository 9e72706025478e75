"""Secrets of scripts: set here, never shown."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from core.admin.confirmation import Question
from core.admin.display import EmptyState
from core.admin.filters import ScopedAutocompleteFilter
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.flows.secrets import delete_secret, set_secret
from scripts_engine.models import Secret

_DELETE = Question(
    title="Delete secret",
    consequences="Scripts get nil for it from now on. Its value is gone; keep it elsewhere.",
    button="Delete",
)


class SecretForm(forms.ModelForm[Secret]):
    """A name and a new value. The flow has the last word on both, as the last step of cleaning."""

    value = forms.CharField(
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "autocomplete": "off"}),
        help_text=(
            "The password or key itself. Kept encrypted and never shown again; a new value is "
            "used by the next run."
        ),
    )

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.instance = set_secret(
                self.instance.organisation,
                name=self.instance.name,
                value=self.cleaned_data["value"],
            )
        except ValidationError as error:
            self.add_error(None, error)


@admin.register(Secret)
class SecretAdmin(DeletedByFlowModelAdmin):
    empty_state = EmptyState(
        "A secret is a password or key that scripts read by name, so that it stands in no source. "
        "Set the first.",
        "Add secret",
        "admin:scripts_engine_secret_add",
    )
    help_texts = {
        "organisation": "Whose scripts may read it: all of this organisation, and no others.",
        "name": (
            'What scripts call it, like SHOP_KEY: secrets.get("SHOP_KEY"). Letters, digits, '
            "_, - and . are allowed. A known name gets the new value."
        ),
    }
    form = SecretForm
    delete_question = _DELETE
    list_display = ("name", "organisation", "created_at", "updated_at")
    list_filter = (("organisation", ScopedAutocompleteFilter),)
    list_select_related = ("organisation",)
    sortable_by = list_display
    search_fields = ("name",)
    search_help_text = "Name"
    autocomplete_fields = ("organisation",)
    add_fieldsets = ((None, {"fields": ("organisation", "name", "value")}),)
    fieldsets = (
        (None, {"fields": ("organisation", "name", "value")}),
        ("History", {"fields": ("created_at", "updated_at")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        times = ["created_at", "updated_at"]
        return times if obj is None else [*times, "organisation", "name"]

    def save_model(
        self, request: HttpRequest, obj: Secret, form: forms.ModelForm[Secret], change: bool
    ) -> None:
        """Saved already, by the form."""

    def delete_by_flow(self, obj: Any) -> None:
        delete_secret(obj.organisation, obj.name)
