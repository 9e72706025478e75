"""The admin's search (Ctrl-K): pages of the menu, and rows within the person's reach.

Rows come only from the model admins' own query sets, so the search sees what their lists show.
Each kind reads at most ``_SEARCHED`` rows, or an index, and shows at most ``_SHOWN`` results.
Nothing is cached: a lost role takes effect with the next letter.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.dataclasses import SearchResult

from accounts.addresses import canonical_email
from accounts.admin.reach import administered_organisations
from accounts.models import ApiKey, Organisation, User
from config.admin.navigation import navigation
from core.admin.links import page_of
from core.database.ids import ids_from_prefix, parse_uuid
from hooks.models import Hook
from jobs.models import Schedule
from scripts_engine.admin.runs.presentation import status_label
from scripts_engine.models import Run, Script

_PARAMETERS = frozenset({"s", "extended"})
_MAX_TERM_CHARACTERS = 100
_MIN_NAME_CHARACTERS = 2
# The newest rows of a kind whose names are compared; the lists search all.
_SEARCHED = 1000
_SHOWN = 5


def search_page(request: HttpRequest) -> TemplateResponse:
    """Results for the term ``s``, as a fragment of the search dialog."""
    if not _PARAMETERS.issuperset(request.GET):
        raise DisallowedModelAdminLookup("The search has no such parameter.")
    term = request.GET.get("s", "").replace("\0", "").strip()[:_MAX_TERM_CHARACTERS]
    results = [*_menu(request, term), *_rows(request, term)] if term else []
    return TemplateResponse(
        request, "unfold/helpers/command_results.html", {"results": results, "term": term}
    )


def _menu(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    for group in navigation(request):
        for item in group["items"]:
            if _is_in(term, item["title"]):
                description = f"Page · {group.get('title', 'Moonhook')}"
                yield SearchResult(item["title"], description, item["link"], item["icon"])


def _rows(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    row_id = parse_uuid(term)
    if row_id is not None:
        yield from _by_id(request, row_id)
        return
    if (ids := ids_from_prefix(term)) is not None:
        for run in _reached(request, Run).filter(pk__range=ids).order_by("-pk")[:_SHOWN]:
            yield _result(request, run)
    if len(term) >= _MIN_NAME_CHARACTERS:
        yield from _by_name(request, term)


def _by_id(request: HttpRequest, row_id: UUID) -> Iterator[SearchResult]:
    for model in (Run, Script, Hook, Schedule, Organisation, ApiKey, User):
        for row in _reached(request, model).filter(pk=row_id):
            yield _result(request, row)


def _by_name(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    for model in (Script, Hook, Schedule, ApiKey, Organisation):
        for row_id in _matching(_reached(request, model), term):
            for row in _reached(request, model).filter(pk=row_id):
                yield _result(request, row)
    users = _reached(request, User).filter(_starts_with("email", canonical_email(term)))
    for row in users.order_by("email")[:_SHOWN]:
        yield _result(request, row)


def _starts_with(field: str, prefix: str) -> Q:
    """Selects rows whose text starts with the prefix, which must not be empty, by an index.

    PostgreSQL has an index of patterns beside the unique index. SQLite has none, but compares text
    byte by byte, so that a range of its unique index serves.
    """
    if connection.vendor == "postgresql":
        return Q(**{f"{field}__startswith": prefix})
    return Q(**{f"{field}__gte": prefix, f"{field}__lt": prefix + "\U0010ffff"})


def _reached(request: HttpRequest, model: type[Model]) -> QuerySet[Any]:
    """The rows that the list of the model shows to the person."""
    page = admin.site.get_model_admin(model)
    rows: QuerySet[Any] = page.get_queryset(request)
    return rows if page.has_view_permission(request) else rows.none()


def _matching(rows: QuerySet[Any], term: str) -> list[UUID]:
    """The ids of the newest rows whose name, or public key, contains the term.

    Compared here, because SQLite ignores the case of ASCII letters only. Names that begin with the
    term come first.
    """
    columns = ["name", "key"] if rows.model is ApiKey else ["name"]
    newest = rows.order_by("-created_at").values_list("pk", *columns)[:_SEARCHED]
    found = [
        (not any(name.casefold().startswith(term.casefold()) for name in names), pk)
        for pk, *names in newest
        if any(_is_in(term, name) for name in names)
    ]
    return [pk for _, pk in sorted(found, key=lambda match: match[0])[:_SHOWN]]


def _is_in(term: str, name: str) -> bool:
    return term.casefold() in name.casefold()


def _result(request: HttpRequest, row: Any) -> SearchResult:
    title, description, icon = _words(request, row)
    return SearchResult(title, " · ".join(filter(None, description)), page_of(row), icon)


def _words(request: HttpRequest, row: Any) -> tuple[str, tuple[str, ...], str]:
    """Title, description (the kind, then the organisation last) and icon."""
    words: tuple[str, ...]
    match row:
        case Script():
            words, icon = ("Script", row.organisation.name), "code"
        case Hook():
            words, icon = ("Hook", row.script.name, row.organisation.name), "webhook"
        case Schedule():
            words = ("Schedule", row.cron, row.script.name, row.organisation.name)
            icon = "event_repeat"
        case Run():
            words = ("Run", status_label(row.status), row.script.name, row.organisation.name)
            return str(row.pk), words, "play_circle"
        case ApiKey():
            words, icon = ("API key", row.organisation.name), "key"
        case User():
            return row.email, ("User", _organisation_of(request, row)), "group"
        case _:
            words, icon = ("Organisation",), "domain"
    return str(row), words, icon


def _organisation_of(request: HttpRequest, user: Any) -> str:
    """The user's home, or else an organisation within reach that the user is a member of."""
    if user.is_own and user.home is not None:
        return str(user.home.name)
    known = administered_organisations(request).filter(memberships__user=user).order_by("name")
    return known.values_list("name", flat=True).first() or ""
