"""What the audit log records of scripts, secrets and stored values, and what alerts tell."""

from django.db.models import TextChoices

from accounts.models.auth_event import register_kinds


class ScriptEvent(TextChoices):
    SCRIPT_CREATED = "script.created", "Script created"
    SCRIPT_SAVED = "script.saved", "Script version saved"
    SCRIPT_RESTORED = "script.restored", "Script version restored"
    SCRIPT_CHANGED = "script.changed", "Script settings changed"
    SCRIPT_ENABLED = "script.enabled", "Script enabled"
    SCRIPT_DISABLED = "script.disabled", "Script disabled"
    SCRIPT_DELETED = "script.deleted", "Script deleted"
    SCRIPT_UNDELETED = "script.undeleted", "Script brought back"
    ALERT_SCRIPT_SET = "alert-script.set", "Alert script chosen"
    ALERT_SCRIPT_REMOVED = "alert-script.removed", "Alert script removed"
    SECRET_SET = "secret.set", "Secret set"
    SECRET_DELETED = "secret.deleted", "Secret deleted"
    STORED_VALUE_SET = "stored-value.set", "Stored value set"
    STORED_VALUE_DELETED = "stored-value.deleted", "Stored value deleted"


class ScriptSubject(TextChoices):
    SCRIPT = "script", "Script"
    SECRET = "secret", "Secret"
    STORED_VALUE = "stored-value", "Stored value"


class ScriptAlert(TextChoices):
    FAILING = "script.failing", "A script fails"
    RECOVERED = "script.recovered", "A script works again"
    RELEASE_PUBLISHED = "release.published", "A release was published"


def register() -> None:
    register_kinds(ScriptEvent, ScriptSubject)
