"""Who did it and to whom: the two parties of events, as the viewer of the audit log may see them.

Events store only names that the organisation of the event may read. What is added here for
superusers, and the links, is looked up for all events of a page together.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin.reach import is_superuser
from accounts.models import (
    HIDDEN_ACTORS,
    ActorKind,
    ApiKey,
    AuthEvent,
    DeviceToken,
    Invitation,
    Organisation,
    SubjectKind,
    User,
)
from core.admin.links import link
from core.database.ids import parse_uuid

_NOT_RECORDED = "Not recorded"

_MODELS: dict[str, type[Model]] = {
    SubjectKind.USER: User,
    SubjectKind.ORGANISATION: Organisation,
    SubjectKind.INVITATION: Invitation,
    SubjectKind.API_KEY: ApiKey,
    SubjectKind.DEVICE: DeviceToken,
}

_Party = tuple[str, str]


def register_subject(kind: SubjectKind, model: type[Model]) -> None:
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
    if kind in (SubjectKind.USER, SubjectKind.ADDRESS) or kind not in SubjectKind:
        return shown
    note = SubjectKind(kind).label
    return _cell(shown, f"{note} {event.credential}" if kind == SubjectKind.API_KEY else note)


def _linked(text: str, address: str | None) -> SafeString | str:
    return text if address is None else link(address, text)


def _cell(text: str, note: str) -> SafeString:
    return format_html(
        '<span class="mh-party">{}<span class="mh-quiet">{}</span></span>', text, note
    )
