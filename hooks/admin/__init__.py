"""Registers the admin pages of hooks, and those of scripts and runs, when imported."""

from accounts.admin.event_words import register_subject, register_words
from core.admin.display import SUCCESS, WARNING
from hooks.admin import refused_calls, scripts_and_runs
from hooks.admin.hooks import page as hooks
from hooks.audit_kinds import HookEvent, HookSubject
from hooks.models import Hook
from hooks.releases import HookKind
from scripts_engine.admin.releases.issued import register_address

register_words(
    {
        HookEvent.CALL_TOKEN_ISSUED: SUCCESS,
        HookEvent.HOOK_DISABLED: WARNING,
        HookEvent.HOOK_DELETED: WARNING,
        HookEvent.SENDER_REMOVED: WARNING,
        HookEvent.SIGNING_SECRET_DELETED: WARNING,
        HookEvent.SIGNING_SECRET_RECEIVED: SUCCESS,
    },
    changes=[HookEvent.HOOK_CHANGED, HookEvent.HOOK_LIMITS_CHANGED],
    fields={
        "max_concurrent_runs": "concurrent runs",
        "max_body_bytes": "largest payload",
        "signed_url": "signed URL",
        "tolerance_seconds": "tolerance",
        "event_id_pointers": "event id",
        "idempotency_window_seconds": "idempotency window",
    },
)
register_subject(HookSubject.HOOK, Hook)
register_address(
    HookKind.name,
    lambda hook_id, token: Hook.objects.select_related("script").get(pk=hook_id).url_with(token),
)

__all__ = ["hooks", "refused_calls", "scripts_and_runs"]
