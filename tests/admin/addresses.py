"""Every address of the admin, from its URL configuration."""

from typing import Any, NamedTuple

from django.contrib import admin
from django.db.models import Model
from django.urls import URLPattern, reverse

from accounts.models import User
from scripts_engine.models import Plan

REGISTERED: list[type[Model]] = list(admin.site._registry)

# Whose id a converter of that name takes; that of the page's own model otherwise.
MODEL_OF_CONVERTER = {"user_id": User, "plan_id": Plan}

# The addresses that are no model's, each with the tests that walk it.
SITE_ADDRESSES = {
    "index": "test_tenant_walk: homes",
    "search": "test_tenant_walk: the menu's search",
    "autocomplete": "test_tenant_walk: autocompletes",
    "app_list": "test_tenant_walk: lists of an app's models",
    "installation": "test_pages_for_others: the installation; test_installation",
    "organisation_switch": "test_organisation_in_view",
    "message_delivery": "test_pages_for_others: message delivery; test_test_messages",
    "login": "test_audit, test_login_lockout",
    "logout": "test_second_factor",
    "login_code": "test_second_factor",
    "step_up": "test_step_up",
    "second_factor": "test_second_factor",
    "recovery_codes": "test_shown_once",
    "forgot_password": "test_forgot_password",
    "password_link": "test_password_link",
    "own_login": "test_staff_logins",
    "device": "sessions_api: test_device_page",
    "moved": "test_moved_addresses",
    "password_change": "one's own password, of nobody else",
    "password_change_done": "says that it was changed",
    "jsi18n": "names of months",
}
# Django's own: the redirect from a row's bare address, and the answer to addresses of nothing.
UNNAMED = {"<path:object_id>/", "(?P<url>.*)$"}


class Address(NamedTuple):
    name: str
    converters: tuple[str, ...]

    def of(self, rows: dict[type, Any], row: Any) -> str:
        """The address that names the row, or the row that its converters ask for."""
        keys = {
            converter: rows[MODEL_OF_CONVERTER[converter]].pk
            if converter in MODEL_OF_CONVERTER
            else row.pk
            for converter in self.converters
        }
        return reverse(f"admin:{self.name}", kwargs=keys)


def addresses_of(model: type[Model]) -> list[Address]:
    """The deletion last: what is deleted shows nothing more. None of a model without pages."""
    if not admin.site.is_registered(model):
        return []
    patterns = admin.site.get_model_admin(model).get_urls()
    found = [
        Address(pattern.name, tuple(pattern.pattern.converters))
        for pattern in patterns
        if pattern.name
    ]
    return sorted(found, key=lambda address: address.name.endswith("_delete"))


def object_addresses(model: type[Model]) -> list[Address]:
    return [address for address in addresses_of(model) if address.converters]


def list_addresses(model: type[Model]) -> list[Address]:
    return [address for address in addresses_of(model) if not address.converters]


def site_patterns() -> list[URLPattern]:
    return [pattern for pattern in admin.site.get_urls() if isinstance(pattern, URLPattern)]
