"""How many scripts, hooks, keys and users an organisation may have, and how often it saves."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.flows.api_keys import issue_api_key, revoke_api_key
from accounts.flows.organisations import remove_member
from accounts.flows.users import create_user
from accounts.models import ApiKey, AuthEvent, Organisation, User
from core.errors import LimitExceededError
from hooks.flows.hooks import delete_hook, issue_hook
from hooks.models import Hook
from scripts_engine.flows.scripts import create_script, delete_script
from scripts_engine.models import Script, ScriptVersion
from tests.concurrency import at_once
from tests.factories import NOBODY, admin_graphql, make_hook, make_script

CREATE_SCRIPT = 'mutation { createScript(name: "x", source: "return 1") { id } }'
CREATE_HOOK = "mutation($id: ID!) { createHook(script: $id) { callToken } }"
CREATE_KEY = 'mutation { createApiKey(name: "x") { secret } }'
CREATE_USER = 'mutation { createUser(email: "dan@example.com") { id } }'
UPDATE = """mutation($id: ID!, $source: String, $name: String) {
    updateScript(id: $id, source: $source, name: $name) { version { number } } }"""
RESTORE = "mutation($id: ID!) { restoreScriptVersion(version: $id) { id } }"


@pytest.fixture
def echo(acme: Organisation) -> Script:
    return make_script(acme)


def test_the_last_script_is_created_and_one_more_is_refused(
    acme_token: str, echo: Script, globex: Organisation, settings: Any
) -> None:
    settings.SCRIPTS_PER_ORGANISATION = 2
    make_script(globex)
    last = admin_graphql(CREATE_SCRIPT, acme_token)
    events = AuthEvent.objects.count()
    refused = admin_graphql(CREATE_SCRIPT, acme_token)

    assert last.code is None
    assert (refused.code, refused.errors[0]["message"]) == (
        "LIMIT_EXCEEDED",
        "An organisation has at most 2 scripts.",
    )
    assert (Script.objects.count(), ScriptVersion.objects.count()) == (3, 3)
    assert AuthEvent.objects.count() == events


def test_a_deleted_script_makes_room_for_another(
    acme_token: str, echo: Script, settings: Any
) -> None:
    settings.SCRIPTS_PER_ORGANISATION = 1
    refused = admin_graphql(CREATE_SCRIPT, acme_token)
    delete_script(echo)

    assert refused.code == "LIMIT_EXCEEDED"
    assert admin_graphql(CREATE_SCRIPT, acme_token).code is None


def test_hooks_are_counted_over_all_scripts_of_the_organisation(
    acme_token: str, acme: Organisation, echo: Script, globex: Organisation, settings: Any
) -> None:
    settings.HOOKS_PER_ORGANISATION = 2
    other = make_script(acme, name="other")
    make_hook(make_script(globex))
    first = make_hook(other).hook
    last = admin_graphql(CREATE_HOOK, acme_token, id=str(echo.pk))
    events = AuthEvent.objects.count()
    refused = admin_graphql(CREATE_HOOK, acme_token, id=str(echo.pk))
    after_refusal = Hook.objects.count(), AuthEvent.objects.count()
    delete_hook(first)

    assert last.code is None
    assert (refused.code, refused.errors[0]["message"]) == (
        "LIMIT_EXCEEDED",
        "An organisation has at most 2 hooks.",
    )
    assert after_refusal == (3, events)
    assert admin_graphql(CREATE_HOOK, acme_token, id=str(echo.pk)).code is None


def test_revoked_keys_make_room_for_others(
    acme_token: str, acme: Organisation, settings: Any
) -> None:
    settings.API_KEYS_PER_ORGANISATION = 2
    key = issue_api_key(acme, name="other").api_key
    refused = admin_graphql(CREATE_KEY, acme_token)
    keys = ApiKey.objects.count()
    revoke_api_key(key)

    assert (refused.code, keys) == ("LIMIT_EXCEEDED", 2)
    assert admin_graphql(CREATE_KEY, acme_token).code is None


def test_keys_that_are_issued_and_revoked_in_turn_are_bounded(
    acme_token: str, acme: Organisation, settings: Any
) -> None:
    settings.API_KEYS_PER_ORGANISATION = 2
    for _ in range(19):
        revoke_api_key(issue_api_key(acme, name="other").api_key)
    refused = admin_graphql(CREATE_KEY, acme_token)
    keys = ApiKey.objects.count()
    ApiKey.objects.filter(revoked_at__isnull=False).update(
        created_at=timezone.now() - timedelta(days=1)
    )

    assert (refused.code, keys) == ("LIMIT_EXCEEDED", 20)
    assert admin_graphql(CREATE_KEY, acme_token).code is None


def test_one_user_too_many_is_refused(acme_token: str, alice: User, settings: Any) -> None:
    settings.USERS_PER_ORGANISATION = 1
    refused = admin_graphql(CREATE_USER, acme_token)
    users = User.objects.count()
    settings.USERS_PER_ORGANISATION = 2

    assert (refused.code, users) == ("LIMIT_EXCEEDED", 1)
    assert admin_graphql(CREATE_USER, acme_token).code is None


def test_users_that_are_created_and_removed_in_turn_are_bounded(
    acme_token: str, acme: Organisation, settings: Any
) -> None:
    settings.USERS_PER_ORGANISATION = 3
    for number in range(3):
        remove_member(acme, create_user(acme, email=f"user{number}@example.com"))
    events = AuthEvent.objects.count()
    refused = admin_graphql(CREATE_USER, acme_token)

    assert refused.code == "LIMIT_EXCEEDED"
    assert refused.errors[0]["message"] == "An organisation creates at most 3 users a day."
    assert (User.objects.count(), AuthEvent.objects.count()) == (3, events)


def test_the_sixty_first_save_of_a_minute_is_refused(
    acme_token: str, acme: Organisation, echo: Script, settings: Any
) -> None:
    settings.SCRIPT_SAVES_PER_MINUTE = 3
    sources = [f"return {number}" for number in range(3)]
    saved = [admin_graphql(UPDATE, acme_token, id=str(echo.pk), source=each) for each in sources]
    unchanged = admin_graphql(UPDATE, acme_token, id=str(echo.pk), source="return 2")
    events = AuthEvent.objects.count()
    refused = admin_graphql(UPDATE, acme_token, id=str(echo.pk), source="return 9", name="new")
    first = ScriptVersion.objects.get(script=echo, number=1)
    restored = admin_graphql(RESTORE, acme_token, id=str(first.pk))
    after = Script.objects.get(pk=echo.pk)

    assert [each.code for each in [*saved, unchanged]] == [None] * 4
    assert (refused.code, restored.code) == ("RATE_LIMITED", "RATE_LIMITED")
    assert 1 <= refused.errors[0]["extensions"]["retryAfter"] <= 60
    assert (after.name, after.source, after.versions.count()) == ("echo", "return 2", 4)
    assert AuthEvent.objects.count() == events
    renamed = admin_graphql(UPDATE, acme_token, id=str(echo.pk), name="new")
    of_another = admin_graphql(UPDATE, acme_token, id=str(make_script(acme).pk), source="return 1")
    assert (renamed.code, of_another.code) == (None, None)


@pytest.mark.django_db(transaction=True)
def test_of_many_scripts_at_once_one_gets_the_last_place(acme: Organisation, settings: Any) -> None:
    settings.SCRIPTS_PER_ORGANISATION = 3
    make_script(acme)
    make_script(acme)

    def create(number: int) -> bool:
        try:
            create_script(acme, name=str(number), source="return 1", author=NOBODY)
        except LimitExceededError:
            return False
        return True

    assert at_once(6, create).count(True) == 1
    assert (Script.objects.count(), ScriptVersion.objects.count()) == (3, 3)


@pytest.mark.django_db(transaction=True)
def test_of_many_hooks_at_once_one_gets_the_last_place(acme: Organisation, settings: Any) -> None:
    settings.HOOKS_PER_ORGANISATION = 2
    scripts = [make_script(acme), make_script(acme)]
    make_hook(scripts[0])

    def issue(number: int) -> bool:
        try:
            issue_hook(scripts[number % 2])
        except LimitExceededError:
            return False
        return True

    assert at_once(6, issue).count(True) == 1
    assert Hook.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_keys_at_once_one_gets_the_last_place(acme: Organisation, settings: Any) -> None:
    settings.API_KEYS_PER_ORGANISATION = 1

    def issue(number: int) -> bool:
        try:
            issue_api_key(acme, name=str(number))
        except LimitExceededError:
            return False
        return True

    assert at_once(6, issue).count(True) == 1
    assert ApiKey.objects.count() == 1
