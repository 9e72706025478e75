"""Passwords and codes that failed at the admin's login, on the page of the user they were for."""

from datetime import timedelta

from django.http import HttpRequest
from django.utils import timezone

from accounts.admin.reach import is_superuser, own_users
from accounts.models import AuthEvent, AuthEventKind, User
from core.admin.panels import Panel, panel_of
from core.database.ids import first_id_at

_SHOWN = 10
_LOOKS_BACK = timedelta(days=1)


@panel_of(User)
def failed_logins(request: HttpRequest, user: User) -> Panel | None:
    """Shown to people who may unlock the login."""
    if not is_superuser(request) and not own_users(request).filter(pk=user.pk).exists():
        return None
    failed = AuthEvent.objects.filter(
        organisation=user.tenant_id,
        kind=AuthEventKind.ADMIN_LOGIN_REFUSED,
        pk__gte=first_id_at(timezone.now() - _LOOKS_BACK),
        email=user.email,
    ).order_by("-pk")[:_SHOWN]
    if not failed and not user.is_staff:
        return None
    return Panel(
        title="Failed admin logins",
        headers=("When (UTC)", "Why", "Address", "Browser"),
        rows=[
            (
                f"{event.at:%Y-%m-%d %H:%M:%S}",
                event.reason,
                event.client_address or "unknown",
                event.user_agent,
            )
            for event in failed
        ],
        empty="None in the last 24 hours.",
    )
