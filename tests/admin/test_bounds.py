"""What the admin's forms say when an organisation has as much as allowed."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import ApiKey, Organisation, User
from hooks.models import Hook
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.runs.spec import NOBODY
from tests.admin.pages import CONFIRMED, list_of, page_of, text_of
from tests.admin.test_scripts import form_of, new_script

pytestmark = pytest.mark.postgresql


def test_one_script_too_many_is_an_error_of_the_form(
    as_bob: Client, acme: Organisation, acme_script: Script, settings: Any
) -> None:
    settings.SCRIPTS_PER_ORGANISATION = 1
    response = as_bob.post(list_of(Script, "add"), new_script(acme))

    assert response.status_code == 200
    assert "An organisation has at most 1 scripts." in text_of(response)
    assert (Script.objects.count(), ScriptVersion.objects.count()) == (1, 1)


def test_a_save_too_soon_is_an_error_of_the_form(
    as_bob: Client, acme_script: Script, settings: Any
) -> None:
    settings.SCRIPT_SAVES_PER_MINUTE = 1
    first = as_bob.post(page_of(acme_script), form_of(acme_script, source="return 1"))
    changes = {"source": "return 2", "name": "new"}
    second = as_bob.post(page_of(acme_script), form_of(acme_script, **changes))
    script = Script.objects.get()

    assert (first.status_code, second.status_code) == (302, 200)
    assert "A script can be saved 1 times a minute. Nothing was saved" in text_of(second)
    assert "return 2" in text_of(second)
    assert (script.source, script.name) == ("return 1", acme_script.name)


def test_a_version_restored_too_soon_is_told(
    as_bob: Client, acme_script: Script, settings: Any
) -> None:
    settings.SCRIPT_SAVES_PER_MINUTE = 1
    update_script(acme_script, author=NOBODY, source="return 1")
    first = ScriptVersion.objects.get(number=1)
    response = as_bob.post(page_of(first, "restore"), CONFIRMED, follow=True)

    assert response.status_code == 200
    assert "A script can be saved 1 times a minute. Nothing was saved" in text_of(response)
    assert ScriptVersion.objects.count() == 2


def test_one_hook_too_many_is_an_error_of_the_form(
    as_bob: Client, acme_hook: Hook, settings: Any
) -> None:
    settings.HOOKS_PER_ORGANISATION = 1
    form = {"script": str(acme_hook.script_id), "name": "second"}
    refused = as_bob.post(list_of(Hook, "add"), form)
    logged = LogEntry.objects.count()
    settings.HOOKS_PER_ORGANISATION = 2
    created = as_bob.post(list_of(Hook, "add"), form)

    assert refused.status_code == 200
    assert "An organisation has at most 1 hooks." in text_of(refused)
    assert 'value="second"' in text_of(refused)
    assert logged == 0
    assert (created.status_code, Hook.objects.count()) == (302, 2)


def test_one_key_too_many_is_an_error_of_the_form(
    as_bob: Client, acme: Organisation, acme_token: str, settings: Any
) -> None:
    settings.API_KEYS_PER_ORGANISATION = 1
    response = as_bob.post(
        list_of(ApiKey, "add"), {"organisation": acme.pk, "name": "second", "preset": "everything"}
    )

    assert response.status_code == 200
    assert "An organisation has at most 1 API keys." in text_of(response)
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("limit", [1])
def test_one_user_too_many_is_an_error_of_the_form(
    as_bob: Client, acme: Organisation, settings: Any, limit: int
) -> None:
    settings.USERS_PER_ORGANISATION = limit
    users = User.objects.count()
    form = {"organisation": acme.pk, "email": "dan@example.com", "role": "member"}
    response = as_bob.post(list_of(User, "add"), form)

    assert response.status_code == 200
    assert "An organisation has at most 1 users." in text_of(response)
    assert User.objects.count() == users
