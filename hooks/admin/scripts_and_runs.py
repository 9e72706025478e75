"""What hooks add to the pages of scripts and runs, and the panels of hooks."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString

from accounts.admin.reach import has_scope, is_superuser
from accounts.scopes import Scope
from core.admin.confirmation import NEXT
from core.admin.display import DANGER, SUCCESS, WARNING, EmptyState, action, display, label
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, button, buttons, link, link_to, list_of, page_of
from core.admin.panels import Link, Panel, panel_of
from core.admin.times import relative
from hooks.admin.refused_calls import REASONS
from hooks.admin.run_as_curl import as_curl
from hooks.models import Hook, IdempotencyKey, RefusedCall
from hooks.senders import PRESETS, Strength
from jobs.admin.runs import QueuedRunAdmin
from jobs.models import Schedule
from scripts_engine.admin.panels import LATEST, enabled_label, latest_runs, usage_panel
from scripts_engine.admin.scripts.page import ScriptAdmin
from scripts_engine.models import DailyUsage, Run, Script


@admin.register(Script)
class CalledScriptAdmin(ScriptAdmin):
    page_scopes = {**ScriptAdmin.page_scopes, "issue_hook": Scope.WRITE_HOOKS}
    actions_detail = ("issue_hook",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        hooks = Hook.objects.filter(script=OuterRef("pk"), deleted_at__isnull=True).order_by()
        count = hooks.values("script").annotate(count=Count("pk")).values("count")
        timed = Schedule.objects.filter(script=OuterRef("pk")).order_by()
        schedules = timed.values("script").annotate(count=Count("pk")).values("count")
        return (
            super()
            .get_queryset(request)
            .annotate(
                hooks_in_use=Coalesce(Subquery(count), 0),
                schedules_in_use=Coalesce(Subquery(schedules), 0),
            )
        )

    @display(description="Used by")
    def used_by(self, script: Any) -> str:
        counts = ((script.hooks_in_use, "hook"), (script.schedules_in_use, "schedule"))
        words = [f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
        return ", ".join(words) or "None"

    def has_issue_hook_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Libraries have no hooks."""
        script: Any = self.get_object(request, object_id) if object_id else None
        return script is not None and not script.is_library

    @action(description="Create hook", icon="webhook", permissions=["issue_hook"])
    def issue_hook(self, request: HttpRequest, object_id: str) -> HttpResponse:
        script = self.get_or_404(request, object_id)
        return redirect(list_of(Hook, "add", script=script.pk))


_STRENGTHS = {
    Strength.SIGNED: ("Signed", SUCCESS),
    Strength.BODY_UNSIGNED: ("The body is not signed", WARNING),
    Strength.SHARED_SECRET: ("Shared secret in clear", WARNING),
    Strength.HANDSHAKE_ONLY: ("Handshake only", DANGER),
}


class HookOfRunFilter(ScopedAutocompleteFilter):
    """Filters by ``hook_id``, with the choices of another model's foreign key to hooks."""

    @classmethod
    def of_runs(
        cls, request: HttpRequest, params: Mapping[str, Any], _: type[Run], model_admin: Any
    ) -> "HookOfRunFilter":
        hook = RefusedCall._meta.get_field("hook")
        return cls(hook, request, params, RefusedCall, model_admin, "hook")

    def chosen(self, queryset: QuerySet[Any], primary_key: str) -> QuerySet[Any]:
        return queryset.filter(hook_id=primary_key)


@admin.register(Run)
class CalledRunAdmin(QueuedRunAdmin):
    empty_state = EmptyState(
        "A run appears when a hook is called or a script is tried. Create a hook and call it "
        "with the curl command on its page.",
        "Create hook",
        "admin:hooks_hook_add",
    )

    def get_list_filter(self, request: HttpRequest) -> tuple[Any, ...]:
        """Offers the hook after the script."""
        filters = super().get_list_filter(request)
        place = 3 if is_superuser(request) else 2
        return (*filters[:place], HookOfRunFilter.of_runs, *filters[place:])

    def parts_of_page(self, request: HttpRequest, run: Run, *, is_runnable: bool) -> dict[str, Any]:
        parts = super().parts_of_page(request, run, is_runnable=is_runnable)
        return {**parts, "sender": sender_of(run), "as_curl": self._as_curl(request, run)}

    def _as_curl(self, request: HttpRequest, run: Run) -> str:
        """The request as a curl command; empty if the run is of no hook that exists."""
        if run.hook_id is None or not self.allows(request, Scope.READ_PAYLOADS, run):
            return ""
        hooks = Hook.objects.filter(deleted_at__isnull=True, script__deleted_at__isnull=True)
        hook = hooks.filter(pk=run.hook_id).select_related("script").first()
        if hook is None:
            return ""
        payload = run.payload_run()
        is_kept = payload is not None and payload.payload_removed_at is None
        return as_curl(run, hook, bytes(payload.request_body) if payload and is_kept else None)


class SenderOfRun(NamedTuple):
    name: str
    strength: str
    event_id: str | None
    """Empty if deliveries are recognised by it and the call had none; ``None`` if they are not."""
    duplicates: int


def sender_of(run: Run) -> SenderOfRun | None:
    """Who sent the call, and how that is proved; ``None`` for a hook without a sender."""
    if not run.sender or not run.verified:
        return None
    preset = PRESETS.get(run.sender)
    key = IdempotencyKey.objects.filter(run_id=run.pk).first()
    return SenderOfRun(
        name=run.sender if preset is None else preset.title,
        strength=strength_label(Strength(run.verified)),
        event_id=run.event_id,
        duplicates=0 if key is None else key.duplicates,
    )


def strength_label(strength: Strength) -> SafeString:
    """How strongly a call proves its sender, as a coloured label."""
    return label(*_STRENGTHS[strength])


LIVE = "Live version"


def pin_label(hook: Hook) -> SafeString | str:
    """What the hook runs, in words; a pin as a coloured label."""
    version = hook.pinned_version
    return LIVE if version is None else label(f"Pinned to version {version.number}", WARNING)


# --- Panels ---------------------------------------------------------------------------------------


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=1)
def hooks_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.is_library:
        return None
    may_change = has_scope(request, Scope.WRITE_HOOKS, script)
    return Panel(
        title="Hooks",
        headers=(
            "Name",
            "HookID",
            "Runs",
            "State",
            "Created",
            *(["Actions"] if may_change else []),
        ),
        rows=[
            (
                link_to(hook),
                hook.pk,
                pin_label(hook),
                enabled_label(hook.is_enabled),
                hook.created_at,
                *([_steps(hook, back_to=page_of(script))] if may_change else []),
            )
            for hook in script.hooks.filter(deleted_at=None).select_related("pinned_version")
        ],
        empty="No hooks. Create one and give its URL to the caller.",
        links=(Link("Create hook", list_of(Hook, "add", script=script.pk), Scope.WRITE_HOOKS),),
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=5)
def pinned_hooks_of_script(request: HttpRequest, script: Script) -> Panel | None:
    """Loudly, above the versions: these hooks do not run what is live."""
    pinned = script.hooks.filter(deleted_at__isnull=True, pinned_version__isnull=False)
    hooks = list(pinned.select_related("pinned_version"))
    if not hooks:
        return None
    return Panel(
        title="Pinned hooks",
        headers=("Hook", "Runs", "Instead of what is live"),
        rows=[
            (
                link_to(hook),
                link(page_of(hook.pinned_version), f"Version {hook.pinned_version.number}"),
                label("Pinned", WARNING),
            )
            for hook in hooks
            if hook.pinned_version is not None
        ],
        empty="",
    )


@panel_of(Hook, scope=Scope.READ_SCRIPTS, place=1)
def usage_of_hook(request: HttpRequest, hook: Hook) -> Panel:
    return usage_panel(DailyUsage.objects.filter(script_id=hook.script_id, hook_id=hook.pk))


@panel_of(Hook, scope=Scope.READ_SCRIPTS)
def runs_of_hook(request: HttpRequest, hook: Hook) -> Panel:
    return latest_runs(
        Run.objects.filter(hook_id=hook.pk)[:LATEST],
        empty="No recorded calls. The call token was shown when it was created.",
        all_runs=list_of(Run, hook__id__exact=hook.pk),
    )


@panel_of(Hook, scope=Scope.READ_SCRIPTS)
def refused_calls_of_hook(request: HttpRequest, hook: Hook) -> Panel:
    return _refused_calls(
        hook.refused_calls.select_related("hook")[:LATEST],
        empty="No refused calls.",
        all_calls=list_of(RefusedCall, hook__id__exact=hook.pk),
        in_full=has_scope(request, Scope.READ_PAYLOADS, hook.organisation),
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=4)
def refused_calls_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.is_library:
        return None
    return _refused_calls(
        script.refused_calls.select_related("hook")[:LATEST],
        empty="No refused calls.",
        all_calls=list_of(RefusedCall, script__id__exact=script.pk),
        in_full=has_scope(request, Scope.READ_PAYLOADS, script),
    )


def _refused_calls(
    calls: Iterable[RefusedCall], *, empty: str, all_calls: str, in_full: bool
) -> Panel:
    return Panel(
        title="Refused calls",
        headers=("Came", "Reason", "Hook", *(["From"] if in_full else [])),
        rows=[
            (
                link(page_of(call), relative(call.at)),
                REASONS[call.reason],
                "" if call.hook is None else call.hook,
                *([call.client_address or ""] if in_full else []),
            )
            for call in calls
        ],
        empty=empty,
        links=(Link("All refused calls", all_calls),),
    )


def _steps(hook: Hook, *, back_to: str) -> str:
    return buttons(
        button(action_of(hook, "rotate"), "Rotate token", of=f"of {hook}"),
        _switch(hook, back_to=back_to),
    )


def _switch(hook: Hook, *, back_to: str) -> str:
    name = "disable" if hook.is_enabled else "enable"
    address = action_of(hook, name, **{NEXT: back_to})
    return button(address, name.capitalize(), of=str(hook))
