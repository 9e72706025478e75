"""Sessions in the admin: the list of open sessions, and ending them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.enums import ActionVariant
from unfold.views import ChangeList

from accounts.admin.event_words import register_subject
from accounts.admin.reach import (
    administered_organisation_ids,
    is_superuser,
    own_users,
    person,
    refuse_beyond,
)
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.models import ApiKey, Organisation, SubjectKind, User
from accounts.scopes import Scope
from core.admin.confirmation import NEXT, EndingMixin, Question
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, button, page_of
from core.admin.panels import Link, Panel, panel_of
from core.http.origin import origin_of
from sessions_api.flows import end_sessions
from sessions_api.models import Session

END_ALL = "sessions_api_session_end_all"

_END_ALL = Question(
    title="End all sessions",
    consequences=(
        "Their tokens are refused immediately. The user's devices stay valid and can open new "
        "sessions: revoke the devices to prevent that."
    ),
    button="End all",
)

register_subject(SubjectKind.SESSION, Session)


class SessionChangeList(ChangeList):
    """Lists only the newest sessions unless a search or a filter is active."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        if self.query or self.has_active_filters:
            return rows
        return rows.filter(pk__in=self.model_admin.newest(request).values("pk"))


@admin.register(Session)
class SessionAdmin(EndingMixin, ReadOnlyTenantModelAdmin):
    """Lists live sessions only: the others are refused already."""

    empty_state = EmptyState(
        "Programs open sessions with an API key, users with a device, at POST /session. Create "
        "an API key to open one.",
        "Create API key",
        "admin:accounts_apikey_add",
        title="No open sessions",
    )
    view_scope = Scope.READ_PEOPLE
    change_scope = Scope.WRITE_PEOPLE
    page_scopes = {"end": Scope.WRITE_PEOPLE, "end_all": Scope.WRITE_PEOPLE}
    action_scopes = {"end_selected": Scope.WRITE_PEOPLE}
    list_display = (
        "owner",
        "shown_credential",
        "organisation",
        "created_at",
        "last_used_at",
        "expires_at",
        "client_address",
    )
    list_filter = (("api_key", ScopedAutocompleteFilter),)
    search_fields = ("device_token__user__email", "api_key__name", "api_key__key")
    search_help_text = "E-mail, or name or key of an API key"
    actions = ("end_selected",)
    actions_detail = ("end",)
    end_question = Question(
        title="End session",
        consequences=(
            "Its token is refused immediately. The API key or device that opened it stays valid "
            "and can open a new session: revoke it to prevent that."
        ),
        button="End session",
    )
    ended_word = "ended"
    ending_deletes = True
    fields = (
        "id",
        "owner",
        "shown_credential",
        "organisation",
        "email",
        "client_address",
        "created_at",
        "last_used_at",
        "expires_at",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        sessions: Any = super().get_queryset(request)
        rows: QuerySet[Any] = sessions.live().with_owners()
        return rows

    def newest(self, request: HttpRequest) -> QuerySet[Session]:
        """The newest unexpired sessions, as many as a list counts.

        Some may have ended with their key, device or owner: checking that takes look-ups in other
        tables, and ``get_queryset`` does it.
        """
        rows: QuerySet[Session] = Session.objects.filter(expires_at__gt=timezone.now())
        if not is_superuser(request):
            rows = self.within_reach(request, rows)
        return rows.order_by("-pk")[: settings.ADMIN_MAX_COUNTED + 1]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SessionChangeList

    def place_of(self, row: Session) -> Organisation | None:
        if row.api_key is not None:
            return row.api_key.organisation
        return None if row.user is None else row.user.home

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Two index look-ups: a single OR condition would scan all sessions."""
        ids = administered_organisation_ids(request)
        by_key = Session.objects.filter(api_key__organisation__in=ids)
        by_device = Session.objects.filter(device_token__user__in=own_users(request))
        either = by_key.order_by().values("pk").union(by_device.order_by().values("pk"), all=True)
        return rows.filter(pk__in=either)

    @display(description="Owner")
    def owner(self, session: Session) -> str:
        return str(session.user or session.api_key)

    @display(description="Credential", label={"API key": "info", "Device token": "primary"})
    def shown_credential(self, session: Session) -> str:
        return str(session.credential.label)

    @action(
        description="End session",
        permissions=["end"],
        variant=ActionVariant.DANGER,
        icon="logout",
    )
    def end(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.ask_and_end_one(request, object_id)

    @admin.action(description="End selected sessions", permissions=["end"])
    def end_selected(self, request: HttpRequest, queryset: QuerySet[Session]) -> HttpResponse:
        return self.ask_and_end_selected(request, queryset)

    def get_urls(self) -> list[URLPattern]:
        end_all = self.admin_site.admin_view(self.end_all)
        return [
            path("of_user/<uuid:user_id>/end/", end_all, name=END_ALL),
            *super().get_urls(),
        ]

    def end_all(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """Ends all open sessions of a user; linked from the user's page."""
        user = get_object_or_404(own_users(request), pk=user_id)
        sessions = list(Session.objects.of_user(user).with_owners())
        return self.ask_and_end(request, sessions, page_of(user), _END_ALL)

    def end_rows(self, request: HttpRequest, rows: Iterable[Session]) -> list[Session]:
        rows = list(rows)
        refuse_beyond(request, *(row.user for row in rows if row.user is not None))
        return end_sessions(rows, origin=origin_of(request), by=person(request))

    def ended_name(self, row: Session) -> str:
        return f"A session of {self.owner(row)}"


def _end_button(session: Session, back_to: str) -> SafeString:
    address = action_of(session, "end", **{NEXT: back_to})
    return button(address, "End", of=f"session of {session.created_at:%Y-%m-%d %H:%M} UTC")


@panel_of(User, scope=Scope.READ_PEOPLE)
def sessions_of_user(request: HttpRequest, user: User) -> Panel | None:
    if not own_users(request).filter(pk=user.pk).exists():
        return None
    sessions = list(Session.objects.of_user(user).with_owners())
    end_all = Link(
        "End all sessions", reverse(f"admin:{END_ALL}", args=[user.pk]), Scope.WRITE_PEOPLE
    )
    return Panel(
        title="Sessions",
        headers=("Device", "Opened", "Last used", "Expires", "From", "Action"),
        rows=[
            (
                session.device_token.label or "Unnamed device" if session.device_token else "",
                session.created_at,
                session.last_used_at,
                session.expires_at,
                session.client_address or "",
                _end_button(session, page_of(user)),
            )
            for session in sessions
        ],
        empty="No open sessions. This user's devices open them at POST /session.",
        links=(end_all,) if sessions else (),
    )


@panel_of(ApiKey, scope=Scope.READ_PEOPLE)
def sessions_of_api_key(request: HttpRequest, api_key: ApiKey) -> Panel:
    return Panel(
        title="Sessions",
        headers=("E-mail given by the program", "Opened", "Last used", "Expires", "From", "Action"),
        rows=[
            (
                session.email,
                session.created_at,
                session.last_used_at,
                session.expires_at,
                session.client_address or "",
                _end_button(session, page_of(api_key)),
            )
            for session in Session.objects.live().filter(api_key=api_key)
        ],
        empty="No open sessions. Programs open them at POST /session with this key and its secret.",
    )
