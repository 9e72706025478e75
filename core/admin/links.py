"""URLs of admin pages, and links to them for table cells."""

from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


def page_of(obj: Model) -> str:
    return action_of(obj, "change")


def action_of(obj: Model, action: str, **query: object) -> str:
    """Returns the URL of one of the object's actions, or of its page (``change``)."""
    opts = obj._meta
    return _with_query(
        reverse(f"admin:{opts.app_label}_{opts.model_name}_{action}", args=[quote(obj.pk)]), query
    )


def list_of(model: type[Model], page: str = "changelist", **query: object) -> str:
    """Returns the URL of the model's list, or of its form for a new object (``add``)."""
    opts = model._meta
    return _with_query(reverse(f"admin:{opts.app_label}_{opts.model_name}_{page}"), query)


def link(address: str, text: object) -> SafeString:
    return format_html('<a class="text-link" href="{}">{}</a>', address, text)


def button(address: str, text: str, *, of: str) -> SafeString:
    """Returns a link to a confirmation page. ``of`` names the row for screen readers."""
    return format_html(
        '<a class="mh-row-button border border-base-200 dark:border-base-700 rounded-default '
        'text-important" href="{}">{}<span class="sr-only">{}</span></a>',
        address,
        text,
        f" {of}" if of else "",
    )


def buttons(*links: str) -> SafeString:
    """Returns the buttons of a row in one cell; empty ones are left out."""
    return format_html(
        '<span class="flex items-center gap-2">{}</span>',
        format_html_join("", "{}", ((one,) for one in links if one)),
    )


def link_to(obj: Model) -> SafeString:
    return link(page_of(obj), obj)


def _with_query(address: str, query: dict[str, object]) -> str:
    return f"{address}?{urlencode(query)}" if query else address
