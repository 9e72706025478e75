"""Secret pages: values are set here and never shown."""

from collections.abc import Sequence

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin.confirmation import Question
from core.admin.display import EmptyState
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.flow_forms import EXPECTED_REVISION
from core.errors import NotFoundError
from core.http.origin import origin_of
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.models import Secret
from scripts_engine.secrets import delete_secret, set_secret

_DELETE = Question(
    title="Delete secret",
    consequences="secrets.get returns nil for it from now on. The value cannot be recovered.",
    button="Delete",
)


class SecretForm(forms.ModelForm[Secret]):
    """A name and a new value."""

    value = forms.CharField(
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "autocomplete": "off"}),
        help_text=(
            "The password or key itself. Stored encrypted and never shown again. "
            "Runs that start after a change use the new value."
        ),
    )


@admin.register(Secret)
class SecretAdmin(DeletedByFlowModelAdmin):
    empty_state = EmptyState(
        "A secret is a password or key that scripts read by name, which keeps it out of their "
        "source.",
        "Add secret",
        "admin:scripts_engine_secret_add",
    )
    help_texts = {
        "organisation": "All scripts of this organisation can read the secret; others cannot.",
        "name": (
            'Scripts read it by this name: secrets.get("SHOP_KEY"). Letters, digits, _, - and . '
            "are allowed. An existing secret of this name gets the new value."
        ),
    }
    form = SecretForm
    refusals = (ValidationError, NotFoundError)
    view_scope = change_scope = Scope.WRITE_SECRETS
    action_scopes = {"delete_selected_by_flow": Scope.WRITE_SECRETS}
    proved_pages = frozenset({"add", "change"})
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

    def save_by_flow(
        self, request: HttpRequest, form: forms.ModelForm[Secret], change: bool
    ) -> Secret:
        secret, data = form.instance, form.cleaned_data
        return set_secret(
            secret.organisation,
            name=secret.name,
            value=data["value"],
            origin=origin_of(request),
            expected_revision=data.get(EXPECTED_REVISION),
        )

    def delete_by_flow(
        self, request: HttpRequest, organisation: Organisation, rows: Sequence[Secret]
    ) -> None:
        for secret in rows:
            delete_secret(organisation, secret.name, origin=origin_of(request))
