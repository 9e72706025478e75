"""Invitations give roles, and new API keys get scopes."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.test import Client

from accounts.models import ApiKey, Membership, Organisation, Role
from accounts.scopes import EVERYTHING, PRESETS, Scope
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.password_mails import NEW, links_mailed, use
from tests.admin.roles import (
    PARTIAL,
)
from tests.written import nothing_written


@pytest.mark.parametrize("role", [*PARTIAL, Role.ADMINISTRATOR])
def test_invitation_gives_the_chosen_role_and_its_link_sets_a_password(
    as_bob: Client, acme: Organisation, role: Role, django_capture_on_commit_callbacks: Any
) -> None:
    form = {"email": "new@example.org", "role": role.value}

    with django_capture_on_commit_callbacks(execute=True):
        response = as_bob.post(page_of(acme, "invite_administrator"), form)
    [link] = links_mailed()
    use(link)

    assert response.status_code == 302
    member = Membership.objects.get(organisation=acme, user__email="new@example.org")
    assert (member.role, member.user.is_staff) == (role, True)
    assert authenticate(username="new@example.org", password=NEW) == member.user


@pytest.mark.parametrize("role", [{"role": "member"}, {"role": ""}, {}])
def test_invitation_without_a_role_that_has_scopes_is_refused(
    as_bob: Client, acme: Organisation, role: dict[str, str]
) -> None:
    with nothing_written():
        response = as_bob.post(
            page_of(acme, "invite_administrator"), {"email": "a@example.org", **role}
        )

    assert response.status_code == 200
    assert mail.outbox == []


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_key_gets_the_scopes_of_the_preset(as_bob: Client, acme: Organisation, preset: Any) -> None:
    form = {"organisation": str(acme.pk), "name": "till", "preset": preset.name}

    as_bob.post(list_of(ApiKey, "add"), form)

    assert ApiKey.objects.get(name="till").held_scopes == preset.scopes


def test_key_gets_the_chosen_scopes(as_bob: Client, acme: Organisation) -> None:
    form = {
        "organisation": str(acme.pk),
        "name": "till",
        "preset": "chosen",
        "chosen": ["ReadAudit", "ReadKeys"],
    }

    as_bob.post(list_of(ApiKey, "add"), form)

    assert ApiKey.objects.get(name="till").held_scopes == {Scope.READ_AUDIT, Scope.READ_KEYS}


def test_key_of_a_form_without_a_preset_is_refused(as_bob: Client, acme: Organisation) -> None:
    with nothing_written():
        response = as_bob.post(
            list_of(ApiKey, "add"), {"organisation": str(acme.pk), "name": "till"}
        )

    assert response.status_code == 200


def test_key_without_any_chosen_scope_is_refused(as_bob: Client, acme: Organisation) -> None:
    form = {"organisation": str(acme.pk), "name": "till", "preset": "chosen"}

    response = as_bob.post(list_of(ApiKey, "add"), form)

    assert "Choose at least one." in text_of(response)
    assert not ApiKey.objects.filter(name="till").exists()


def test_key_of_everything_has_all(as_bob: Client, acme: Organisation) -> None:
    form = {"organisation": str(acme.pk), "name": "till", "preset": "everything"}

    as_bob.post(list_of(ApiKey, "add"), form)

    assert ApiKey.objects.get(name="till").held_scopes == EVERYTHING


def test_form_of_a_key_says_what_a_leak_would_mean(as_bob: Client) -> None:
    page = text_of(as_bob.get(list_of(ApiKey, "add")))

    assert all(preset.title in page and preset.can in page for preset in PRESETS)
    assert page.count("If it leaks:") == len(PRESETS) + 1
