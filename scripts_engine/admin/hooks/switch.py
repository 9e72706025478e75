"""Enabling and disabling hooks: on the hook's page, on its script's page and in the list."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin.tenancy import TenantModelAdmin
from core.admin.confirmation import Question, ask, is_confirmed, next_address
from core.admin.display import action
from core.admin.links import page_of
from core.http.origin import origin_of
from scripts_engine.flows.hooks import update_hook
from scripts_engine.models import Hook

_DISABLE = Question(
    title="Disable hook",
    consequences=(
        "Calls return 404 from now on, and nothing runs. The token stays the same: "
        "once enabled again, the hook works as before."
    ),
    button="Disable",
)
_ENABLE = Question(
    title="Enable hook",
    consequences="Anyone with its URL or call token can run the script again.",
    button="Enable",
)


class SwitchableHooks(TenantModelAdmin):
    """Adds the enable and disable actions; each button shows only when it applies."""

    def has_disable_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return self._has_state(request, object_id, is_enabled=True)

    def has_enable_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return self._has_state(request, object_id, is_enabled=False)

    @action(description="Disable", icon="block", permissions=["disable"])
    def disable(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._ask_and_switch(request, object_id, _DISABLE, is_enabled=False)

    @action(description="Enable", icon="check_circle", permissions=["enable"])
    def enable(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._ask_and_switch(request, object_id, _ENABLE, is_enabled=True)

    @admin.action(description="Enable selected hooks", permissions=["change"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[Hook]) -> None:
        self._switch(request, queryset, is_enabled=True)

    @admin.action(description="Disable selected hooks", permissions=["change"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[Hook]) -> None:
        self._switch(request, queryset, is_enabled=False)

    def _has_state(self, request: HttpRequest, object_id: str | None, *, is_enabled: bool) -> bool:
        hook: Any = self.get_object(request, object_id) if object_id else None
        return hook is not None and hook.is_enabled == is_enabled

    def _ask_and_switch(
        self, request: HttpRequest, object_id: str, question: Question, *, is_enabled: bool
    ) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, question, [hook])
        self._switch(request, [hook], is_enabled=is_enabled)
        return redirect(next_address(request, page_of(hook)))

    def _switch(
        self, request: HttpRequest, hooks: QuerySet[Hook] | list[Hook], *, is_enabled: bool
    ) -> None:
        done = "Enabled" if is_enabled else "Disabled"
        rows = list(hooks)
        for hook in rows:
            update_hook(hook, origin=origin_of(request), is_enabled=is_enabled)
            self.log_change(request, hook, f"{done}.")
        subject = str(rows[0]) if len(rows) == 1 else f"{len(rows)} hooks"
        self.message_user(request, f"{done} {subject}.", messages.SUCCESS)
