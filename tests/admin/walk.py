"""A walk over all addresses of the admin: what is opened, sent and told."""

from typing import Any

from django.test import Client

from accounts.models import Membership, Organisation, User
from hooks.models import Hook
from scripts_engine.models import Run, Script
from tests.admin.addresses import (
    REGISTERED,
    list_addresses,
    object_addresses,
)
from tests.admin.pages import (
    CONFIRMED,
    OUR_MODELS,
    text_of,
)

OURS = [model for model in REGISTERED if model in OUR_MODELS]


def foreign_form(rows: dict[type, Any]) -> dict[str, str]:
    """A form that says yes to everything, and names what is Globex's wherever it can."""
    organisation, user = rows[Organisation], rows[User]
    membership = Membership.objects.get(organisation=organisation, user=user)
    return {
        **CONFIRMED,
        "post": "yes",
        "organisation": str(organisation.pk),
        "script": str(rows[Script].pk),
        "hook": str(rows[Hook].pk),
        "user": str(user.pk),
        "home": str(organisation.pk),
        "name": "Bobs",
        "email": "bobs@example.com",
        "value": "bobs",
        "source": 'return params.get("body")',
        "method": "POST",
        "query": "",
        "headers": "",
        "body": "",
        "body_of": str(rows[Run].pk),
        "run": str(rows[Run].pk),
        "timeout_seconds": "1",
        "is_active": "on",
        "is_enabled": "on",
        "role": "administrator",
        "channel": "email",
        "to": "bobs@example.com",
        "overlap_seconds": "0",
        "password1": "a long enough one",
        "password2": "a long enough one",
        "usable_password": "true",
        "memberships-TOTAL_FORMS": "2",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(membership.pk),
        "memberships-0-organisation": str(organisation.pk),
        "memberships-0-user": str(user.pk),
        "memberships-0-role": "administrator",
        "memberships-0-DELETE": "on",
        "memberships-1-organisation": str(organisation.pk),
        "memberships-1-user": str(user.pk),
        "memberships-1-role": "administrator",
    }


def opened(client: Client, addresses: list[str]) -> list[str]:
    """The addresses that answer with more than a refusal, or tell of Globex."""
    return not_refused([(address, client.get(address)) for address in addresses])


def answered(client: Client, addresses: list[str], form: dict[str, str]) -> list[str]:
    return not_refused(sent(client, addresses, form))


def sent(client: Client, addresses: list[str], form: dict[str, str]) -> list[tuple[str, Any]]:
    """Each address with its answers: to the form, and to the same as JSON."""
    as_json = {"content_type": "application/json"}
    return [
        (address, client.post(address, form, **kind))
        for address in addresses
        for kind in ({}, as_json)
    ]


def not_refused(answers: list[tuple[str, Any]]) -> list[str]:
    return [
        f"{answer.status_code} {address}"
        for address, answer in answers
        if answer.status_code not in (403, 404, 405) or tells_of_globex(answer)
    ]


def tells_of_globex(response: Any) -> bool:
    return "globex" in text_of(response).lower()


def plain(model: type) -> list[str]:
    return [address.of({}, None) for address in list_addresses(model)]


def plain_of_all() -> list[str]:
    return [address for model in OURS for address in plain(model)]


def of_row(model: type, rows: dict[type, Any]) -> list[str]:
    return [address.of(rows, rows[model]) for address in object_addresses(model)]


def of_rows(rows: dict[type, Any]) -> list[str]:
    return [address for model in OURS for address in of_row(model, rows)]
