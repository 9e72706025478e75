"""The audit log in plain words: colours and reasons of events, who did it, and to whom.

Events store only names that the organisation of the event may read. What is added here for
superusers, and the links, is looked up for all events of a page together.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Model, TextChoices
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin.reach import is_superuser
from accounts.models import (
    HIDDEN_ACTORS,
    ActorKind,
    ApiKey,
    AuditReason,
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Invitation,
    Organisation,
    SubjectKind,
    User,
)
from accounts.models.auth_event import subject_kinds
from core.admin.display import DANGER, INFO, SUCCESS, WARNING
from core.admin.links import link
from core.database.ids import parse_uuid

_COLOURS: dict[str, str] = {
    AuthEventKind.SESSION_OPENED: SUCCESS,
    AuthEventKind.SESSION_REFUSED: DANGER,
    AuthEventKind.PIN_NOT_SENT: WARNING,
    AuthEventKind.PIN_REFUSED: DANGER,
    AuthEventKind.DEVICE_ADDED: SUCCESS,
    AuthEventKind.DEVICE_REVOKED: WARNING,
    AuthEventKind.API_KEY_ISSUED: SUCCESS,
    AuthEventKind.API_KEY_REVOKED: WARNING,
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
    AuditReason.APPROVER_GONE: "The person who approved the key has left or is inactive",
    AuditReason.CREATED_WITH_IT: "The key that created it was revoked or narrowed",
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
    AuditReason.USER_CODES: "Wrong codes of program logins",
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
_FIELDS: dict[str, str] = {
    "is_active": "active",
    "is_staff": "staff",
    "is_superuser": "superuser",
    "email": "e-mail",
}
_OF_FIELDS: set[str] = {
    AuthEventKind.USER_CHANGED,
    AuthEventKind.ORGANISATION_CHANGED,
}
_NOT_RECORDED = "Not recorded"
_MODELS: dict[str, type[Model]] = {
    SubjectKind.USER: User,
    SubjectKind.ORGANISATION: Organisation,
    SubjectKind.INVITATION: Invitation,
    SubjectKind.API_KEY: ApiKey,
    SubjectKind.DEVICE: DeviceToken,
}
_Party = tuple[str, str]


def register_words(
    colours: Mapping[str, str],
    changes: Iterable[str] = (),
    fields: Mapping[str, str] | None = None,
) -> None:
    """Registers the words of an app's events.

    ``colours`` are those of its kinds. The reasons of the kinds in ``changes`` are names of fields,
    and ``fields`` has words for those that say little.
    """
    _COLOURS.update(colours)
    _OF_FIELDS.update(changes)
    _FIELDS.update(fields or {})


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


def register_subject(kind: TextChoices, model: type[Model]) -> None:
    """Makes the audit log link to the model's pages. Apps above this one register theirs."""
    _MODELS[kind] = model


def describe(site: AdminSite, request: HttpRequest, events: Sequence[AuthEvent]) -> None:
    """Sets ``who`` and ``to_whom`` of each event; the number of queries does not depend on them."""
    names = _names_for_superusers(events) if is_superuser(request) else {}
    pages = _pages(site, request, [party for event in events for party in _parties(event)])
    for event in events:
        event.who = _who(event, names, pages)  # type: ignore[attr-defined]
        event.to_whom = _to_whom(event, pages)  # type: ignore[attr-defined]


def _parties(event: AuthEvent) -> list[_Party]:
    return [
        (event.subject_kind or "", event.subject_id or ""),
        (event.actor_kind or "", event.actor_id or ""),
    ]


def _pages(site: AdminSite, request: HttpRequest, parties: Iterable[_Party]) -> dict[_Party, str]:
    """The pages that the viewer may open."""
    wanted: dict[str, set[Any]] = defaultdict(set)
    for kind, text in parties:
        if kind in _MODELS and (primary_key := parse_uuid(text)) is not None:
            wanted[kind].add(primary_key)
    pages = {}
    for kind, keys in wanted.items():
        opts = _MODELS[kind]._meta
        rows = site.get_model_admin(_MODELS[kind]).get_queryset(request).filter(pk__in=keys)
        for primary_key in rows.order_by().values_list("pk", flat=True):
            name = f"admin:{opts.app_label}_{opts.model_name}_change"
            pages[kind, str(primary_key)] = reverse(name, args=[primary_key])
    return pages


def _names_for_superusers(events: Sequence[AuthEvent]) -> dict[str, str]:
    """The e-mails of actors whose names the organisation of the event may not know."""
    keys = {event.actor_id for event in events if event.actor_kind in HIDDEN_ACTORS}
    users = User.objects.filter(pk__in=[key for key in keys if key and parse_uuid(key)])
    return {str(primary_key): email for primary_key, email in users.values_list("pk", "email")}


def _who(event: AuthEvent, names: dict[str, str], pages: dict[_Party, str]) -> SafeString | str:
    kind = event.actor_kind
    if kind in HIDDEN_ACTORS:
        name = names.get(event.actor_id or "", "")
        note = ActorKind(kind).label
        return _cell(name, note) if name else note
    if kind == ActorKind.API_KEY:
        return _cell(event.actor_label or "", f"API key {event.actor_id}")
    if kind in (ActorKind.USER, ActorKind.COMMAND):
        return _linked(event.actor_label or "", pages.get((kind, event.actor_id or "")))
    return ActorKind(kind).label if kind and kind in ActorKind else _NOT_RECORDED


def _to_whom(event: AuthEvent, pages: dict[_Party, str]) -> SafeString | str:
    kind = event.subject_kind
    if kind is None:
        return ""
    text = event.subject_label or event.subject_id or ""
    shown = _linked(text, pages.get((kind, event.subject_id or "")))
    note = dict(subject_kinds()).get(kind)
    if kind in (SubjectKind.USER, SubjectKind.ADDRESS) or note is None:
        return shown
    return _cell(shown, f"{note} {event.credential}" if kind == SubjectKind.API_KEY else note)


def _linked(text: str, address: str | None) -> SafeString | str:
    return text if address is None else link(address, text)


def _cell(text: str, note: str) -> SafeString:
    return format_html(
        '<span class="mh-party">{}<span class="mh-quiet">{}</span></span>', text, note
    )
