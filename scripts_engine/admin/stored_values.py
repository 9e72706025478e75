"""The pages of stored values: what scripts keep between runs, as people see and change it."""

import json
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin.confirmation import Question
from core.admin.display import EmptyState, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.flow_forms import EXPECTED_REVISION, add_errors, show_next
from core.admin.times import exact
from core.errors import ConflictError
from core.http.origin import origin_of
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.flows.source import with_lua_line_ends
from scripts_engine.models import StoredValue
from scripts_engine.stored_values import (
    ABSENT,
    StoredValueChangedError,
    delete_stored_value,
    fingerprint,
    set_stored_value,
)

_LISTED_CHARACTERS = 80
_SHOWN_IN_ERROR_CHARACTERS = 300
_JSON, _TEXT = "json", "text"
_TYPES = {'"': "Text", "{": "Object", "[": "Array", "t": "Boolean", "f": "Boolean", "n": "Null"}
_FORM_FIELDS = {"key": "typed_key", "value": "typed_value"}
_GONE = (
    "This value no longer exists: a script has deleted it, or it has expired. Nothing was saved. "
    "Save again to create it."
)
_TAKEN = "There is a value under this key already. Open it in the list to change it."
_DELETE = Question(
    title="Delete stored value",
    consequences="store.get returns nil for the key from now on. This cannot be undone.",
    button="Delete",
)


class StoredValueForm(forms.ModelForm[StoredValue]):
    """A key, a value as JSON or text, and an expiry."""

    typed_key = forms.CharField(
        label="Key",
        strip=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text='Scripts read the value with store.get("key"). 1 to 256 bytes.',
    )
    entered_as = forms.ChoiceField(
        choices=((_JSON, "JSON"), (_TEXT, "Text")),
        widget=UnfoldAdminSelectWidget(),
        help_text="JSON for numbers, booleans and tables: 42, true, {…}. Text for a string.",
    )
    typed_value = forms.CharField(
        label="Value",
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            attrs={"rows": 8, "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text="At most 64 KiB as JSON. Runs read the new value immediately.",
    )
    # The fingerprint of the value that the page shows.
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_new = self.instance._state.adding
        del self.fields["seen" if self._is_new else "typed_key"]
        # Who only reads the value has a form without fields.
        if "expires_at" in self.fields:
            self.fields["expires_at"].required = False
        self.initial["entered_as"] = _JSON
        if not self._is_new:
            text = _plain_text(self.instance.value)
            self.initial["entered_as"] = _JSON if text is None else _TEXT
            self.initial["typed_value"] = self.instance.value if text is None else text
            self.initial["seen"] = fingerprint(self.instance)

    def values(self) -> dict[str, Any]:
        """The values as ``set_stored_value`` takes them."""
        return {
            "key": self._key(),
            "value": self._value(),
            "expires_at": self._expires_at(),
            "seen": ABSENT if self._is_new else self.cleaned_data["seen"],
            "expected_revision": self.cleaned_data.get(EXPECTED_REVISION),
        }

    def _key(self) -> bytes:
        if self._is_new:
            return str(self.cleaned_data["typed_key"]).encode()
        return bytes(self.instance.key)

    def _value(self) -> str:
        typed = with_lua_line_ends(self.cleaned_data["typed_value"])
        if self.cleaned_data["entered_as"] == _TEXT:
            return json.dumps(typed, ensure_ascii=False)
        return typed.strip()

    def _expires_at(self) -> Any:
        """The typed time; the stored one if unchanged, since the form shows no fractions."""
        is_changed = "expires_at" in self.changed_data
        return self.cleaned_data["expires_at"] if is_changed else self.initial.get("expires_at")

    def ask_again(self, current: StoredValue | None) -> None:
        """Adds an error that shows the value; the next save replaces what it shows."""
        if self._is_new:
            self.add_error("typed_key", ValidationError(_TAKEN, code="unique"))
            return
        show_next(self, "seen", fingerprint(current))
        message = _GONE if current is None else _changed(current)
        self.add_error(None, ValidationError(message, code="changed"))


def _changed(current: StoredValue) -> str:
    value = Truncator(current.value).chars(_SHOWN_IN_ERROR_CHARACTERS)
    expiry = current.expires_at
    until = "" if expiry is None else f", until {exact(expiry)}"
    return (
        f"A script has changed this value since you opened it. Nothing was saved. It is now "
        f"{value}{until}. Save again to replace it."
    )


def _plain_text(value: str) -> str | None:
    """The string in the JSON, if a text field can hold it unchanged."""
    if not value.startswith('"'):
        return None
    text: str = json.loads(value)
    return text if all(char.isprintable() or char in "\n\t" for char in text) else None


@admin.register(StoredValue)
class StoredValueAdmin(DeletedByFlowModelAdmin):
    empty_state = EmptyState(
        "Scripts keep values between runs with store.set(key, value). Stored values appear here.",
        "Add stored value",
        "admin:scripts_engine_storedvalue_add",
    )
    help_texts = {
        "organisation": "All scripts of this organisation share the value; others cannot read it.",
        "expires_at": "When the value is deleted (UTC). Leave empty for no expiry.",
    }
    view_scope = Scope.READ_PAYLOADS
    change_scope = Scope.WRITE_SECRETS
    action_scopes = {"delete_selected_by_flow": Scope.WRITE_SECRETS}
    form = StoredValueForm
    refusals = (ValidationError, StoredValueChangedError)
    delete_question = _DELETE
    list_display = ("__str__", "type", "beginning", "organisation", "updated_at", "expires_at")
    list_filter = (("organisation", ScopedAutocompleteFilter),)
    list_select_related = ("organisation",)
    autocomplete_fields = ("organisation",)
    add_fieldsets = (
        (
            None,
            {"fields": ("organisation", "typed_key", "entered_as", "typed_value", "expires_at")},
        ),
    )
    fieldsets = (
        (
            None,
            {"fields": ("key_text", "type", "entered_as", "typed_value", "expires_at", "seen")},
        ),
        ("History", {"fields": ("organisation", "updated_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).live()  # type: ignore[attr-defined]
        return rows

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Without the form's own fields, the value as text."""
        if obj is None or self.has_change_permission(request, obj):
            return super().get_fieldsets(request, obj)
        fields = ("key_text", "type", "value", "expires_at", "organisation", "updated_at")
        return ((None, {"fields": fields}),)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [] if obj is None else ["key_text", "type", "organisation", "updated_at"]

    def save_by_flow(
        self, request: HttpRequest, form: StoredValueForm, change: bool
    ) -> StoredValue:
        organisation = form.instance.organisation
        return set_stored_value(organisation, **form.values(), origin=origin_of(request))

    def show_refusal(
        self, form: StoredValueForm, refusal: ValidationError | StoredValueChangedError
    ) -> None:
        if isinstance(refusal, StoredValueChangedError):
            form.ask_again(refusal.current)
        else:
            add_errors(form, refusal, _FORM_FIELDS)

    def show_conflict(
        self, form: StoredValueForm, conflict: ConflictError, current: StoredValue
    ) -> None:
        show_next(form, "seen", fingerprint(current))
        super().show_conflict(form, conflict, current)

    def delete_by_flow(
        self, request: HttpRequest, organisation: Organisation, rows: Sequence[StoredValue]
    ) -> None:
        for stored in rows:
            delete_stored_value(stored, origin=origin_of(request))

    @display(description="Key")
    def key_text(self, stored: StoredValue) -> str:
        return str(stored)

    @display(description="Type")
    def type(self, stored: StoredValue) -> str:
        return _TYPES.get(stored.value[:1], "Number")

    @display(description="Value")
    def beginning(self, stored: StoredValue) -> str:
        return Truncator(stored.value).chars(_LISTED_CHARACTERS)
