"""Every endpoint on a database that answers and stores nothing, as after a failover."""

import json
from typing import Any

import pytest

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook
from jobs.models import QueueEntry, RunLease
from scripts_engine.models import Run
from sessions_api.models import Session
from tests.client import Client
from tests.factories import (
    admin_graphql,
    api_key_login,
    make_hook,
    make_script,
    make_user,
    post_session,
    set_rules,
    user_graphql,
)
from tests.hooks.calls import path_of
from tests.unavailable import assert_logged_in_one_line, read_only_database

pytestmark = pytest.mark.django_db(transaction=True)

LARGE = b"x" * 300_000


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme, 'return "done"'))


def post(issued: IssuedHook, body: bytes = b"order 1") -> Any:
    return Client().post(path_of(issued), body, content_type="text/plain")


def test_a_run_that_cannot_be_recorded_is_not_answered_as_done(
    issued: IssuedHook, caplog: pytest.LogCaptureFixture
) -> None:
    with read_only_database():
        refused = post(issued)

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert refused.json()["code"] == "run-not-recorded"
    assert refused.json()["detail"].startswith("The script ran, but")
    assert "Moonhook-Run-Id" not in refused.headers
    assert not Run.objects.exists()
    assert_logged_in_one_line(caplog, "run-not-recorded")
    assert post(issued).status_code == 200


@pytest.mark.parametrize("rule", ["max_concurrent_runs", "calls_per_minute"])
def test_a_call_that_cannot_be_counted_does_not_run(issued: IssuedHook, rule: str) -> None:
    set_rules(issued.hook, **{rule: 5})
    with read_only_database():
        refused = post(issued)

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert refused.json()["code"] == "unavailable"
    assert not Run.objects.exists()
    assert not RunLease.objects.exists()
    assert post(issued).status_code == 200


def test_a_delivery_that_cannot_be_claimed_does_not_run(issued: IssuedHook) -> None:
    set_rules(issued.hook, idempotency="body-hash")
    with read_only_database():
        refused = post(issued)

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert refused.json()["code"] == "unavailable"
    assert not Run.objects.exists()
    assert post(issued).status_code == 200


def test_an_accepted_call_that_cannot_be_stored_does_not_say_that_the_script_ran(
    issued: IssuedHook, caplog: pytest.LogCaptureFixture
) -> None:
    set_rules(issued.hook, reply_mode="accepted")
    with read_only_database():
        refused = post(issued)

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert refused.json()["code"] == "run-not-recorded"
    assert refused.json()["detail"] == (
        "The call could not be stored, so it is not accepted and its script does not run."
    )
    assert "Moonhook-Run-Id" not in refused.headers
    assert not Run.objects.exists()
    assert not QueueEntry.objects.exists()
    assert_logged_in_one_line(caplog, "run-not-recorded")
    assert post(issued).status_code == 202


def test_no_session_is_opened_and_open_ones_are_shown(acme_key: IssuedApiKey) -> None:
    login = api_key_login(acme_key)
    token = post_session(Client(), login).json()["token"]
    with read_only_database():
        refused = post_session(Client(), login)
        shown = Client().get("/session", headers={"Authorization": f"Bearer {token}"})

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert refused.json()["code"] == "unavailable"
    assert shown.status_code == 200
    assert Session.objects.count() == 1


def test_graphql_mutations_of_programs_find_it_unavailable(
    acme: Organisation, acme_token: str
) -> None:
    with read_only_database():
        refused = admin_graphql(
            'mutation { createScript(name: "s", source: "return 1") { id } }', acme_token
        )
        asked = admin_graphql("{ organisation { name } }", acme_token)

    assert refused.code == "UNAVAILABLE"
    assert refused.errors[0]["extensions"]["retryAfter"] == 5
    assert (asked.status, asked.data) == (200, {"organisation": {"name": "Acme"}})
    assert not acme.scripts.exists()


def test_graphql_mutations_of_people_find_it_unavailable(acme: Organisation) -> None:
    make_user(acme, "alice@example.com")
    with read_only_database():
        refused = user_graphql(
            'mutation { sendPinCode(email: "alice@example.com", sendVia: Email) }'
        )

    assert refused.code == "UNAVAILABLE"
    assert refused.errors[0]["extensions"]["retryAfter"] == 5


def test_a_large_run_that_cannot_be_recorded_is_not_answered_as_done(issued: IssuedHook) -> None:
    # In the test's thread, as calls are where there are no green threads.
    with read_only_database():
        refused = post(issued, LARGE)

    assert (refused.status_code, json.loads(refused.content)["code"]) == (503, "run-not-recorded")
    assert not Run.objects.exists()
