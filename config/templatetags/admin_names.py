"""Names in breadcrumbs and titles: lists as in the sidebar, rows exactly as they are called.

And times, as lists show them.
"""

from typing import Any
from urllib.parse import parse_qsl

from django import template
from django.contrib.admin.views.main import ORDER_VAR
from django.db.models import Model
from django.template import Context
from django.urls import reverse
from django.utils.text import capfirst

from config.admin.sidebar import narrowed_place_of, place_of
from core.admin.display import EmptyState
from core.admin.times import relative

register = template.Library()
register.simple_tag(relative, name="relative_time")


@register.simple_tag(takes_context=True)
def breadcrumbs(context: Context, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Unfold's breadcrumbs without the app, which the sidebar does not name.

    On a narrow screen, the longest is shortened before the others.
    """
    shown = parts[1:] if len(parts) > 1 else parts
    titles = [_title(part) for part in shown]
    if name := _filtered_list_name(context):
        titles[-1] = name
    longest = max(titles, key=len, default="")
    return [
        {"link": part.get("link"), "title": title, "is_longest": title == longest}
        for part, title in zip(shown, titles, strict=True)
    ]


@register.simple_tag(takes_context=True)
def list_name(context: Context, opts: Any) -> str:
    """The name of a model's list, or of the filtered list that the sidebar offers."""
    if name := _filtered_list_name(context):
        return name
    return _list_name(_address_of(opts)) or capfirst(str(opts.verbose_name_plural))


@register.filter
def filtered_empty_state(changelist: Any) -> EmptyState | None:
    """The empty state of a filtered list that the sidebar offers."""
    states = getattr(changelist.model_admin, "filtered_empty_states", {})
    return states.get(_list_name(_shown_address(changelist)))


@register.filter
def unnarrowed(changelist: Any) -> str:
    """The address without search and filters, but of the list that the sidebar offers."""
    found = narrowed_place_of(_shown_address(changelist))
    return "?" if found is None else found[0]


@register.filter
def is_narrowed(changelist: Any) -> bool:
    """Whether a search or filters narrow the list, beyond those of the sidebar."""
    of_sidebar = dict(parse_qsl(unnarrowed(changelist).partition("?")[2]))
    chosen = changelist.params.keys() - of_sidebar.keys() - {ORDER_VAR}
    return bool(changelist.query or (changelist.has_active_filters and chosen))


def _shown_address(changelist: Any) -> str:
    return f"{_address_of(changelist.opts)}{changelist.get_query_string()}"


def _address_of(opts: Any) -> str:
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")


def _filtered_list_name(context: Context) -> str:
    found = narrowed_place_of(context["request"].get_full_path())
    return "" if found is None else found[1].name


def _title(part: dict[str, Any]) -> str:
    title = part["title"]
    if isinstance(title, Model):
        return str(title)
    return _list_name(str(part.get("link", ""))) or capfirst(str(title))


def _list_name(address: str) -> str:
    place = place_of(address)
    return "" if place is None else place.name
