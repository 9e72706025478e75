"""The admin's navigation: the sidebar and the account menu."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from accounts.admin.reach import is_administrator, is_superuser
from config.admin.sidebar import GROUPS, SUPERUSERS_GROUP, link_to, place_of


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """List the pages that the user may see; users who administer nothing see the home page."""
    groups = [*GROUPS] if is_administrator(request) else []
    if is_superuser(request):
        groups.append(SUPERUSERS_GROUP)
    home = {"title": "Home", "icon": "home", "link": reverse("admin:index")}
    return [
        {"items": [home]},
        *(
            {
                "title": title,
                "separator": True,
                "items": [_item(request, name, icon, link_to(page)) for name, icon, page in items],
            }
            for title, items in groups
        ),
    ]


def _item(request: HttpRequest, name: str, icon: str, link: str) -> dict[str, Any]:
    item: dict[str, Any] = {"title": name, "icon": icon, "link": link}
    # Unfold compares paths only, and would mark a filtered list together with the whole one.
    if "?" in link:
        item["active"] = request.get_full_path() == link
    elif _is_filtered_list(request, link):
        item["active"] = False
    return item


def _is_filtered_list(request: HttpRequest, link: str) -> bool:
    """Whether the page is that list under a filter that the sidebar names."""
    address = request.get_full_path()
    return address.startswith(f"{link}?") and place_of(address) is not None


def account_links(request: HttpRequest) -> list[dict[str, str]]:
    """List the links of the account menu."""
    return [
        {"title": "Change e-mail and phone", "link": reverse("admin:own_login")},
        {"title": "Change password", "link": reverse("admin:password_change")},
        {"title": "Second factor", "link": reverse("admin:second_factor")},
    ]
