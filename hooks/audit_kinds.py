"""What the audit log records of hooks and their senders."""

from django.db.models import TextChoices

from accounts.models.auth_event import register_kinds


class HookEvent(TextChoices):
    CALL_TOKEN_ISSUED = "call-token.issued", "Hook created"
    CALL_TOKEN_ROTATED = "call-token.rotated", "Call token rotated"
    CALL_TOKEN_SHOWN = "call-token.shown", "Call token shown again"
    HOOK_CHANGED = "hook.changed", "Hook changed"
    HOOK_ENABLED = "hook.enabled", "Hook enabled"
    HOOK_DISABLED = "hook.disabled", "Hook disabled"
    HOOK_DELETED = "hook.deleted", "Hook deleted"
    HOOK_RESTORED = "hook.restored", "Hook restored"
    HOOK_PINNED = "hook.pinned", "Hook pinned to a version"
    HOOK_UNPINNED = "hook.unpinned", "Hook unpinned"
    HOOK_LIMITS_CHANGED = "hook.limits-changed", "Limits of a hook changed"
    SENDER_SET = "sender.set", "Sender set"
    SENDER_REMOVED = "sender.removed", "Sender removed"
    SIGNING_SECRET_SET = "signing-secret.set", "Signing secret set"
    SIGNING_SECRET_DELETED = "signing-secret.deleted", "Signing secret deleted"
    SIGNING_SECRET_RECEIVED = "signing-secret.received", "Signing secret received"
    TEST_EVENT_SENT = "test-event.sent", "Test event sent"
    LISTENING_STARTED = "hook.listening-started", "Listening to a hook started"
    HANDSHAKE_EXPECTED = "handshake.expected", "Handshake expected"


class HookSubject(TextChoices):
    HOOK = "hook", "Hook"


def register() -> None:
    register_kinds(HookEvent, HookSubject)
