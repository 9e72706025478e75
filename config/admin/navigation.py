"""The admin's navigation: the sidebar and the account menu."""

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.contrib.admin import site
from django.http import HttpRequest
from django.urls import reverse

from accounts.admin.reach import is_superuser, organisation_in_view
from config.admin.organisation_switch import can_switch
from config.admin.sidebar import GROUPS, SUPERUSERS_GROUP, link_to, narrowed_place_of


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """List the pages that the user may see; users without a role see the home page."""
    groups: list[tuple[str, Sequence[tuple[str, str, str]]]] = [
        (title, [item for item in items if _is_shown(request, item[2])]) for title, items in GROUPS
    ]
    if is_superuser(request):
        groups.append(SUPERUSERS_GROUP)
    home = {"title": "Home", "icon": "home", "link": reverse("admin:index")}
    return [
        {"items": [home, *_switch(request)]},
        *(
            {
                "title": title,
                "separator": True,
                "items": [_item(request, name, icon, link_to(page)) for name, icon, page in items],
            }
            for title, items in groups
            if items
        ),
    ]


def _switch(request: HttpRequest) -> list[dict[str, Any]]:
    """The organisation in view, which opens the page that changes it."""
    if not can_switch(request):
        return []
    in_view = organisation_in_view(request)
    title = in_view.name if in_view else "All organisations"
    return [{"title": title, "icon": "swap_horiz", "link": reverse("admin:organisation_switch")}]


def _is_shown(request: HttpRequest, page: str) -> bool:
    """Whether the person's roles open the list."""
    app, model, _ = page.partition("?")[0].rsplit("_", 2)
    model_admin = site.get_model_admin(apps.get_model(app, model))
    return model_admin.has_view_permission(request)


def _item(request: HttpRequest, name: str, icon: str, link: str) -> dict[str, Any]:
    item: dict[str, Any] = {"title": name, "icon": icon, "link": link}
    # Unfold compares paths only, and would mark a filtered list together with the whole one.
    found = narrowed_place_of(request.get_full_path())
    if "?" in link:
        item["active"] = found is not None and found[0] == link
    elif found is not None and found[0].startswith(f"{link}?"):
        item["active"] = False
    return item


def account_links(request: HttpRequest) -> list[dict[str, str]]:
    """List the links of the account menu."""
    return [
        {"title": "Log a program in", "link": reverse("admin:device")},
        {"title": "Change e-mail and phone", "link": reverse("admin:own_login")},
        {"title": "Change password", "link": reverse("admin:password_change")},
        {"title": "Second factor", "link": reverse("admin:second_factor")},
    ]
