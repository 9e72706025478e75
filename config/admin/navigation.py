"""The admin's sidebar."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from accounts.admin.reach import is_administrator, is_superuser

_GROUPS = (
    (
        "Scripts",
        (
            ("Scripts", "code", "scripts_engine_script_changelist"),
            ("Hooks", "webhook", "scripts_engine_hook_changelist"),
            ("Runs", "play_circle", "scripts_engine_run_changelist"),
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
        ),
    ),
    (
        "PIN login",
        (
            ("PIN requests", "pin", "accounts_pinchallenge_changelist"),
            ("PIN lockouts", "lock", "accounts_pinfailures_changelist"),
        ),
    ),
    ("Audit", (("Audit log", "history", "accounts_authevent_changelist"),)),
)
_SUPERUSERS_GROUP = (
    "System",
    (
        (
            "Failed admin logins",
            "gpp_bad",
            "accounts_authevent_changelist?kind__exact=admin.login-refused",
        ),
        ("Background tasks", "schedule", "django_tasks_database_dbtaskresult_changelist"),
        ("Message delivery", "outgoing_mail", "message_delivery"),
    ),
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """List the pages that the user may see; users who administer nothing see the home page."""
    groups = [*_GROUPS] if is_administrator(request) else []
    if is_superuser(request):
        groups.append(_SUPERUSERS_GROUP)
    home = {"title": "Home", "icon": "home", "link": reverse("admin:index")}
    return [
        {"items": [home]},
        *(
            {
                "title": title,
                "separator": True,
                "items": [
                    {"title": name, "icon": icon, "link": _link(page)} for name, icon, page in items
                ],
            }
            for title, items in groups
        ),
    ]


def _link(page: str) -> str:
    name, mark, query = page.partition("?")
    return f"{reverse(f'admin:{name}')}{mark}{query}"


def account_links(request: HttpRequest) -> list[dict[str, str]]:
    """List the links of the account menu."""
    return [
        {"title": "Change password", "link": reverse("admin:password_change")},
        {"title": "Second factor", "link": reverse("admin:second_factor")},
    ]
