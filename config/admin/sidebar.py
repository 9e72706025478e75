"""The lists and pages in the admin's sidebar, by group: breadcrumbs and titles use these names.

Imports no models: templates and the site load before them.
"""

from functools import cache
from typing import NamedTuple
from urllib.parse import parse_qsl

from django.urls import reverse

GROUPS = (
    (
        "Scripts",
        (
            ("Scripts", "code", "scripts_engine_script_changelist"),
            ("Hooks", "webhook", "hooks_hook_changelist"),
            ("Schedules", "event_repeat", "jobs_schedule_changelist"),
            ("Releases", "rocket_launch", "scripts_engine_release_changelist"),
            ("Runs", "play_circle", "scripts_engine_run_changelist"),
            ("Queue", "pending_actions", "jobs_queueentry_changelist"),
            ("Dead letters", "report", "scripts_engine_run_changelist?dead_letter=yes"),
            ("Refused calls", "block", "hooks_refusedcall_changelist"),
            ("Secrets", "password", "scripts_engine_secret_changelist"),
            ("Stored values", "database", "scripts_engine_storedvalue_changelist"),
        ),
    ),
    (
        "Identity",
        (
            ("Organisations", "domain", "accounts_organisation_changelist"),
            ("Users", "group", "accounts_user_changelist"),
            ("Invitations", "mail", "accounts_invitation_changelist"),
            ("API keys", "key", "accounts_apikey_changelist"),
            ("Devices", "smartphone", "accounts_devicetoken_changelist"),
            ("Sessions", "login", "sessions_api_session_changelist"),
            ("PIN requests", "pin", "accounts_pinchallenge_changelist"),
        ),
    ),
    ("Audit", (("Audit log", "history", "accounts_authevent_changelist"),)),
)
SUPERUSERS_GROUP = (
    "System",
    (
        ("Installation", "monitor_heart", "installation"),
        (
            "Failed admin logins",
            "gpp_bad",
            "accounts_authevent_changelist?kind__exact=admin.login-refused",
        ),
        ("Background tasks", "schedule", "jobs_message_changelist"),
        ("Message delivery", "outgoing_mail", "message_delivery"),
    ),
)


class SidebarPlace(NamedTuple):
    """A list's group and name in the sidebar."""

    group: str
    name: str


def place_of(address: str) -> SidebarPlace | None:
    return _places().get(address)


def narrowed_place_of(address: str) -> tuple[str, SidebarPlace] | None:
    """The filtered list that the sidebar offers and the address narrows further, or shows."""
    path, _, query = address.partition("?")
    given = set(parse_qsl(query, keep_blank_values=True))
    for link, place in _places().items():
        of_link, mark, filtered = link.partition("?")
        if mark and of_link == path and set(parse_qsl(filtered)) <= given:
            return link, place
    return None


@cache
def _places() -> dict[str, SidebarPlace]:
    return {
        link_to(page): SidebarPlace(group, name)
        for group, items in (*GROUPS, SUPERUSERS_GROUP)
        for name, _, page in items
    }


def link_to(page: str) -> str:
    name, mark, query = page.partition("?")
    return f"{reverse(f'admin:{name}')}{mark}{query}"
