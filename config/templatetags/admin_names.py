"""Names in breadcrumbs and titles: lists as in the sidebar, rows exactly as they are called."""

from typing import Any

from django import template
from django.db.models import Model
from django.urls import reverse
from django.utils.text import capfirst

from config.admin.sidebar import place_of

register = template.Library()


@register.filter
def breadcrumbs(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Unfold's breadcrumbs without the app, which the sidebar does not name.

    On a narrow screen, the longest is shortened before the others.
    """
    shown = parts[1:] if len(parts) > 1 else parts
    titles = [_title(part) for part in shown]
    longest = max(titles, key=len, default="")
    return [
        {"link": part.get("link"), "title": title, "is_longest": title == longest}
        for part, title in zip(shown, titles, strict=True)
    ]


@register.filter
def list_name(opts: Any) -> str:
    """The name of a model's list."""
    address = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
    return _list_name(address) or capfirst(str(opts.verbose_name_plural))


def _title(part: dict[str, Any]) -> str:
    title = part["title"]
    if isinstance(title, Model):
        return str(title)
    return _list_name(str(part.get("link", ""))) or capfirst(str(title))


def _list_name(address: str) -> str:
    place = place_of(address)
    return "" if place is None else place.name
