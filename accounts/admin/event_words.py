"""The audit log in plain words: colours of events, and texts for their reasons."""

from accounts.models import AuditReason, AuthEvent, AuthEventKind
from core.admin.display import DANGER, INFO, SUCCESS, WARNING

_COLOURS: dict[str, str] = {
    AuthEventKind.SESSION_OPENED: SUCCESS,
    AuthEventKind.SESSION_REFUSED: DANGER,
    AuthEventKind.PIN_NOT_SENT: WARNING,
    AuthEventKind.PIN_REFUSED: DANGER,
    AuthEventKind.DEVICE_ADDED: SUCCESS,
    AuthEventKind.DEVICE_REVOKED: WARNING,
    AuthEventKind.API_KEY_ISSUED: SUCCESS,
    AuthEventKind.API_KEY_REVOKED: WARNING,
    AuthEventKind.CALL_TOKEN_ISSUED: SUCCESS,
    AuthEventKind.HOOK_DISABLED: WARNING,
    AuthEventKind.HOOK_DELETED: WARNING,
    AuthEventKind.SENDER_REMOVED: WARNING,
    AuthEventKind.SIGNING_SECRET_DELETED: WARNING,
    AuthEventKind.SIGNING_SECRET_RECEIVED: SUCCESS,
    AuthEventKind.SCRIPT_DISABLED: WARNING,
    AuthEventKind.SCRIPT_DELETED: WARNING,
    AuthEventKind.SECRET_DELETED: WARNING,
    AuthEventKind.USER_DEACTIVATED: WARNING,
    AuthEventKind.STAFF_GRANTED: WARNING,
    AuthEventKind.SUPERUSER_GRANTED: WARNING,
    AuthEventKind.MEMBER_REMOVED: WARNING,
    AuthEventKind.INVITATION_ACCEPTED: SUCCESS,
    AuthEventKind.INVITATION_DECLINED: WARNING,
    AuthEventKind.TEST_MESSAGE_SENT: SUCCESS,
    AuthEventKind.TEST_MESSAGE_NOT_SENT: WARNING,
    AuthEventKind.RATE_LIMITED: DANGER,
    AuthEventKind.ADMIN_LOGIN: SUCCESS,
    AuthEventKind.ADMIN_LOGIN_REFUSED: DANGER,
}
_REASONS: dict[str, str] = {
    AuditReason.MALFORMED_SECRET: "Secret is malformed",
    AuditReason.MALFORMED_KEY: "Key is malformed",
    AuditReason.UNKNOWN_KEY: "Unknown key",
    AuditReason.UNKNOWN_DEVICE: "Unknown device",
    AuditReason.WRONG_SECRET: "Wrong secret",
    AuditReason.WRONG_EMAIL: "E-mail of another user",
    AuditReason.REVOKED: "Revoked",
    AuditReason.EXPIRED: "Expired",
    AuditReason.INACTIVE_USER: "User is inactive",
    AuditReason.INACTIVE_ORGANISATION: "Organisation is inactive",
    AuditReason.ADDRESS_NOT_ALLOWED: "Client address is not allowed",
    AuditReason.CHANGED: "Credential changed during the login",
    AuditReason.MALFORMED_PIN: "PIN is malformed",
    AuditReason.NO_OPEN_CHALLENGE: "No PIN was requested, or it was used up",
    AuditReason.ACCOUNT_STOPPED: "PIN login is locked",
    AuditReason.WRONG_OR_EXPIRED_PIN: "PIN is wrong or expired",
    AuditReason.USED_OR_INACTIVE: "PIN was used, or the user is inactive",
    AuditReason.REQUESTED_TOO_LONG_AGO: "Requested too long ago",
    AuditReason.SMS_LIMIT: "SMS limit",
    AuditReason.MAIL_LIMIT: "E-mail limit",
    AuditReason.ADDRESS_LIMIT: "Limit of answers about addresses",
    AuditReason.ADMIN_LOGIN: "Admin login",
    AuditReason.ADMINISTRATOR_INVITED: "As administrator",
    AuditReason.LOCKED_OUT: "Login is locked",
    AuditReason.WRONG_CREDENTIALS: "Wrong e-mail or password",
    AuditReason.NOT_STAFF: "User is not staff",
    AuditReason.WRONG_CODE: "Wrong code of the second factor",
    AuditReason.TOO_MANY_CODES: "Too many wrong codes",
    AuditReason.PASSWORD_CHANGED: "Password",
    AuditReason.PASSWORD_SET_BY_LINK: "Password set by link",
    AuditReason.PASSWORD_REMOVED: "Password removed",
    AuditReason.SECOND_FACTOR_RESET: "Reset by an administrator",
    AuditReason.SECOND_FACTOR_TURNED_ON: "Turned on",
    AuditReason.SECOND_FACTOR_TURNED_OFF: "Turned off",
    AuditReason.NEW_RECOVERY_CODES: "New recovery codes",
}
# Names of changed fields, which are the reason of some events.
_FIELDS = {
    "is_active": "active",
    "is_staff": "staff",
    "is_superuser": "superuser",
    "timeout_seconds": "time limit",
    "max_concurrent_runs": "concurrent runs",
    "max_attempts": "attempts",
    "max_body_bytes": "largest payload",
    "signed_url": "signed URL",
    "tolerance_seconds": "tolerance",
    "event_id_pointers": "event id",
    "idempotency_window_seconds": "idempotency window",
    "email": "e-mail",
}
_OF_FIELDS: frozenset[str] = frozenset(
    {
        AuthEventKind.USER_CHANGED,
        AuthEventKind.SCRIPT_CHANGED,
        AuthEventKind.HOOK_CHANGED,
        AuthEventKind.HOOK_LIMITS_CHANGED,
        AuthEventKind.ORGANISATION_CHANGED,
    }
)


def colour_of(event: AuthEvent) -> str:
    return _COLOURS.get(event.kind, INFO)


def reason_of(event: AuthEvent) -> str:
    """The reason in words; reasons without a text of their own are words already."""
    if event.reason in _REASONS:
        return _REASONS[event.reason]
    text = event.reason
    if event.kind in _OF_FIELDS:
        fields = event.reason.split(", ")
        text = ", ".join(_FIELDS.get(field, field.replace("_", " ")) for field in fields)
    return text[:1].upper() + text[1:]
