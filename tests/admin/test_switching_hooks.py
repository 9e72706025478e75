"""Enabling and disabling hooks from their page and their script's."""

import pytest
from django.test import Client

from accounts.models import User
from hooks.models import Hook
from scripts_engine.models import Script
from tests.admin import pages
from tests.admin.pages import CONFIRMED, page_of

pytestmark = pytest.mark.django_db


def test_disabling_asks_first(as_bob: Client, acme_hook: Hook) -> None:
    reply = as_bob.get(page_of(acme_hook, "disable"))

    assert reply.status_code == 200
    assert "404 from now on" in reply.content.decode()
    acme_hook.refresh_from_db()
    assert acme_hook.is_enabled


def test_a_disabled_hook_is_enabled_again(as_bob: Client, acme_hook: Hook) -> None:
    as_bob.post(page_of(acme_hook, "disable"), CONFIRMED)
    acme_hook.refresh_from_db()
    assert not acme_hook.is_enabled

    as_bob.post(page_of(acme_hook, "enable"), CONFIRMED)
    acme_hook.refresh_from_db()
    assert acme_hook.is_enabled


def test_disabling_returns_to_the_script(
    as_bob: Client, acme_hook: Hook, acme_script: Script
) -> None:
    back = page_of(acme_script)

    reply = as_bob.post(page_of(acme_hook, "disable"), {**CONFIRMED, "next": back})

    assert reply["Location"] == back


def test_enabling_an_enabled_hook_is_refused(as_bob: Client, acme_hook: Hook) -> None:
    reply = as_bob.post(page_of(acme_hook, "enable"), CONFIRMED)

    assert reply.status_code == 403


def test_charlie_cannot_disable_a_hook_of_acme(charlie: User, acme_hook: Hook) -> None:
    reply = pages.logged_in(charlie).post(page_of(acme_hook, "disable"), CONFIRMED)

    assert reply.status_code in {403, 404}
    acme_hook.refresh_from_db()
    assert acme_hook.is_enabled


def test_the_script_page_offers_the_available_actions(
    as_bob: Client, acme_hook: Hook, acme_script: Script
) -> None:
    shown = as_bob.get(page_of(acme_script)).content.decode()

    assert page_of(acme_hook, "rotate") in shown
    assert page_of(acme_hook, "disable") in shown
    assert page_of(acme_hook, "enable") not in shown


def test_only_earlier_versions_can_be_restored(as_bob: Client, acme_script: Script) -> None:
    first = acme_script.current_version
    assert first is not None
    form = {"name": acme_script.name, "timeout_seconds": "10", "source": "return 2"}
    as_bob.post(page_of(acme_script), form)
    acme_script.refresh_from_db()
    second = acme_script.current_version
    assert second is not None

    shown = as_bob.get(page_of(acme_script)).content.decode()

    assert page_of(first, "restore") in shown
    assert page_of(second, "restore") not in shown
