"""Hooks: issued here, with the call token shown once; rotated, switched, deleted."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.enums import ActionVariant

from accounts.admin.confirmation import Question, ask, is_confirmed
from accounts.admin.decorators import action, display
from accounts.admin.links import page_of
from accounts.admin.once import IssuedOnAdd, show_once
from accounts.admin.overlap import OverlapForm
from accounts.admin.reach import person
from accounts.admin.scoped_filter import ScopedAutocompleteFilter
from config.http.origin import origin_of
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.flows.delete_hook import delete_hook
from scripts_engine.flows.issue_hook import IssuedHook, issue_hook
from scripts_engine.flows.rotate_call_token import rotate_call_token
from scripts_engine.flows.update_hook import update_hook
from scripts_engine.models import Hook

_ROTATE = Question(
    title="Rotate call token",
    consequences=(
        "The hook gets a new call token, shown once on the next page, and with it a new URL. "
        "Whoever calls the hook needs the new one before the old one ends."
    ),
    button="Rotate",
)
_DELETE = Question(
    title="Delete hook",
    consequences=(
        "It stops at once: whoever calls it gets 404. Its runs stay readable. "
        "This cannot be undone; to stop it for a while, disable it."
    ),
    button="Delete",
)


@admin.register(Hook)
class HookAdmin(IssuedOnAdd, DeletedByFlowModelAdmin):
    issue_button = "Issue hook"
    organisation_path = "script__organisation"
    delete_question = _DELETE
    list_display = ("__str__", "script", "organisation", "is_enabled", "created_at")
    list_filter = (
        ("script", ScopedAutocompleteFilter),
        ("is_enabled", BooleanRadioFilter),
    )
    list_select_related = ("script__organisation",)
    search_fields = ("name", "script__name")
    search_help_text = "Name of hook or script"
    autocomplete_fields = ("script",)
    actions = ("enable_selected", "disable_selected", "delete_selected_by_flow")
    actions_detail = ("rotate",)
    add_fieldsets = ((None, {"fields": ("script", "name")}),)
    fieldsets = (
        (None, {"fields": ("script", "name", "is_enabled")}),
        (
            "Addresses",
            {
                "fields": ("shown_url", "shown_secure_url", "id", "created_at", "previous_token"),
                "description": (
                    "The call token was shown once, when it was made. If it is lost, rotate it."
                ),
            },
        ),
    )

    def delete_by_flow(self, obj: Hook) -> None:
        delete_hook(obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        hooks: Any = super().get_queryset(request)
        rows: QuerySet[Any] = hooks.existing().select_related("script__organisation")
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        shown = ["shown_url", "shown_secure_url", "id", "created_at", "previous_token"]
        return shown if obj is None else [*shown, "script"]

    @display(description="Organisation", ordering="script__organisation")
    def organisation(self, hook: Hook) -> str:
        return hook.organisation.name

    @display(description="URL")
    def shown_url(self, hook: Hook) -> str:
        return hook.url

    @display(description="URL with Basic auth")
    def shown_secure_url(self, hook: Hook) -> str:
        return hook.secure_url

    @display(description="Previous call token")
    def previous_token(self, hook: Hook) -> str:
        until = hook.previous_valid_until
        is_good = until is not None and until > timezone.now()
        return f"Good until {until:%Y-%m-%d %H:%M} UTC" if is_good else "Worth nothing"

    def save_model(
        self, request: HttpRequest, obj: Hook, form: forms.ModelForm[Hook], change: bool
    ) -> None:
        if change:
            update_hook(obj, **form.cleaned_data)
            return
        issued = issue_hook(
            obj.script, name=obj.name, origin=origin_of(request), by=person(request)
        )
        obj.pk = issued.hook.pk
        obj.refresh_from_db()
        request.issued = issued  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: Hook, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._show(request, request.issued, "Hook issued")  # type: ignore[attr-defined]

    @action(description="Rotate call token", icon="sync", variant=ActionVariant.WARNING)
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook = self.get_or_404(request, object_id)
        form = OverlapForm(request.POST if is_confirmed(request) else None)
        if not form.is_valid():
            return ask(self, request, _ROTATE, [hook], form)
        issued = rotate_call_token(
            hook,
            overlap_seconds=form.cleaned_data["overlap_seconds"],
            origin=origin_of(request),
            by=person(request),
        )
        self.log_change(request, hook, "Rotated the call token.")
        return self._show(request, issued, "Call token rotated")

    def _show(self, request: HttpRequest, issued: IssuedHook, title: str) -> HttpResponse:
        return show_once(
            self,
            request,
            "admin/issued_hook.html",
            {
                "title": title,
                "hook_id": str(issued.hook.pk),
                "call_token": issued.call_token,
                "url": issued.hook.url_with(issued.call_token),
                "secure_url": issued.hook.secure_url,
                "done": page_of(issued.hook),
                "script": issued.hook.script,
                "script_page": page_of(issued.hook.script),
            },
        )

    @admin.action(description="Enable selected hooks", permissions=["change"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[Hook]) -> None:
        self._switch(request, queryset, is_enabled=True)

    @admin.action(description="Disable selected hooks", permissions=["change"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[Hook]) -> None:
        self._switch(request, queryset, is_enabled=False)

    def _switch(self, request: HttpRequest, hooks: QuerySet[Hook], *, is_enabled: bool) -> None:
        done = "Enabled" if is_enabled else "Disabled"
        for hook in hooks:
            update_hook(hook, is_enabled=is_enabled)
            self.log_change(request, hook, f"{done}.")
            self.message_user(request, f"{done} {hook}.", messages.SUCCESS)
