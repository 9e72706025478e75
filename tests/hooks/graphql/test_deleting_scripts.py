"""A script takes its hooks and schedules with it, so deleting it needs their scope too."""

import pytest

from accounts.models import AuthEvent, Organisation
from accounts.scopes import Scope
from hooks.flows.hooks import delete_hook
from hooks.models import Hook
from jobs.schedules.schedules import create_schedule, delete_schedule
from scripts_engine.models import Script
from tests.accounts.test_field_scopes import token_with
from tests.factories import GraphQLAnswer, admin_graphql

DELETE = "mutation($id: ID!) { deleteScript(id: $id) }"


@pytest.fixture
def token(acme: Organisation) -> str:
    return token_with(acme, Scope.READ_SCRIPTS, Scope.PUBLISH)


def delete(script: Script, token: str) -> GraphQLAnswer:
    return admin_graphql(DELETE, token, id=str(script.pk))


def is_there(script: Script) -> bool:
    return Script.objects.existing().filter(pk=script.pk).exists()


def test_script_with_a_hook_takes_the_scope_of_hooks(
    acme: Organisation, hook: Hook, token: str
) -> None:
    refused = delete(hook.script, token)

    [error] = refused.errors
    assert (error["extensions"]["code"], error["extensions"]["scope"]) == (
        "FORBIDDEN",
        "WriteHooks",
    )
    assert error["message"] == "This needs the scope WriteHooks."
    assert is_there(hook.script)
    assert not AuthEvent.objects.filter(kind="script.deleted").exists()
    enough = token_with(acme, Scope.PUBLISH, Scope.WRITE_HOOKS)
    assert delete(hook.script, enough).errors == []
    assert not is_there(hook.script)


def test_script_with_a_schedule_takes_the_scope_of_schedules(script: Script, token: str) -> None:
    schedule = create_schedule(script, name="nightly", cron="0 3 * * *")
    refused = delete(script, token)
    there = is_there(script)
    delete_schedule(schedule)

    assert refused.errors[0]["extensions"] == {"code": "FORBIDDEN", "scope": "WriteHooks"}
    assert there
    assert delete(script, token).errors == []
    assert not is_there(script)


def test_script_whose_hooks_are_deleted_takes_no_more_than_publish(hook: Hook, token: str) -> None:
    delete_hook(hook)

    assert delete(hook.script, token).errors == []
    assert not is_there(hook.script)
