"""Try it on the page for a new script: nothing is stored."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from scripts_engine.models import Run, Script, StoredValue
from scripts_engine.secrets import set_secret
from tests import factories
from tests.admin.pages import logged_in, run_of
from tests.written import nothing_written

pytestmark = pytest.mark.django_db


def try_new(client: Client, chosen: Organisation | None, **changes: Any) -> Any:
    data = {
        "organisation": "" if chosen is None else str(chosen.pk),
        "source": 'log.info("called") return params.get("body")',
        "method": "POST",
        "query": "",
        "headers": "",
        "body": "a pot of tea",
    }
    return client.post(
        reverse("admin:scripts_engine_script_try_new"),
        json.dumps(data | changes),
        content_type="application/json",
    )


def test_a_new_source_runs_and_nothing_is_stored(as_bob: Client, acme: Organisation) -> None:
    with nothing_written():
        reply = try_new(as_bob, acme)

    assert reply.status_code == 200
    assert "a pot of tea" in reply.json()["html"]
    assert "called" in reply.json()["html"]
    assert "latestRuns" not in reply.json()


def test_the_result_says_that_it_is_not_recorded(as_bob: Client, acme: Organisation) -> None:
    html = try_new(as_bob, acme).json()["html"]

    assert "Not recorded" in html
    assert "Open run" not in html


def test_an_error_in_a_new_source_says_its_line(as_bob: Client, acme: Organisation) -> None:
    answer = try_new(as_bob, acme, source="\nerror('out of tea')").json()

    assert answer["line"] == 2
    assert "out of tea" in answer["message"]


@pytest.mark.parametrize(
    "call",
    [
        'secrets.get("SHOP_KEY")',
        'store.get("stock")',
        'store.set("stock", 1)',
        'store.increment("stock")',
        'store.delete("stock")',
    ],
)
def test_a_new_source_gets_neither_secrets_nor_store(
    as_bob: Client, acme: Organisation, call: str
) -> None:
    set_secret(acme, name="SHOP_KEY", value="hunter2hunter2")
    StoredValue.objects.create(organisation=acme, key=b"stock", value="7")
    with nothing_written():
        answer = try_new(as_bob, acme, source=f"return ToJson({{{call}}})").json()

    assert "save the script first" in answer["message"]
    assert "hunter2" not in answer["html"]


def test_a_new_source_has_no_script_id(as_bob: Client, acme: Organisation) -> None:
    source = 'return tostring(params.get("script_id")) .. params.get("org_id")'

    html = try_new(as_bob, acme, source=source).json()["html"]

    assert f"nil{acme.pk}" in html


def test_an_organisation_must_be_chosen(as_root: Client) -> None:
    reply = try_new(as_root, None)

    assert reply.status_code == 400
    assert reply.json()["errors"] == {"organisation": ["Choose the organisation first."]}


@pytest.mark.parametrize("organisation", [None, 7, "nonsense", ["a"], {}])
def test_an_unknown_organisation_runs_nothing(as_bob: Client, organisation: object) -> None:
    reply = try_new(as_bob, None, organisation=organisation)

    assert reply.status_code == 404
    assert "a pot of tea" not in reply.content.decode()


def test_charlie_cannot_run_a_new_script_for_acme(charlie: User, acme: Organisation) -> None:
    as_charlie = logged_in(charlie)
    with nothing_written():
        reply = try_new(as_charlie, acme)

    assert reply.status_code == 404
    assert "a pot of tea" not in reply.content.decode()


def test_staff_without_an_organisation_cannot_run_a_new_script(
    as_erin: Client, acme: Organisation
) -> None:
    reply = try_new(as_erin, acme)

    assert reply.status_code in {403, 404}
    assert "a pot of tea" not in reply.content.decode()


def test_a_stranger_cannot_run_a_new_script(acme: Organisation) -> None:
    assert try_new(Client(), acme).status_code == 302


def test_running_a_new_script_requires_the_csrf_token(bob: User, acme: Organisation) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)

    assert try_new(strict, acme).status_code == 403


def test_running_a_new_script_requires_post(as_bob: Client) -> None:
    assert as_bob.get(reverse("admin:scripts_engine_script_try_new")).status_code == 405


def test_no_new_script_of_a_disabled_organisation_runs(as_bob: Client, acme: Organisation) -> None:
    acme.is_active = False
    acme.save()

    reply = try_new(as_bob, acme)

    assert reply.status_code == 409
    assert "switched off" in reply.json()["errors"]["__all__"][0]


def test_a_new_script_has_no_recent_payload(
    as_bob: Client, acme: Organisation, acme_script: Script
) -> None:
    earlier = run_of(factories.make_hook(acme_script).hook, body=b"hers")

    reply = try_new(as_bob, acme, body_of=str(earlier.pk))

    assert reply.status_code == 400
    assert "no longer exists" in reply.json()["errors"]["body_of"][0]
    assert Run.objects.count() == 1


def test_an_invalid_header_of_a_new_script_runs_nothing(as_bob: Client, acme: Organisation) -> None:
    reply = try_new(as_bob, acme, headers="no colon")

    assert reply.status_code == 400
    assert "is not a valid header" in reply.json()["errors"]["headers"][0]


def test_runs_without_a_record_are_limited(as_bob: Client, bob: User, acme: Organisation) -> None:
    for _ in range(windows.UNRECORDED_RUNS_OF_PERSON.amount):
        hit([windows.UNRECORDED_RUNS_OF_PERSON], "unrecorded-run", str(bob.pk))

    reply = try_new(as_bob, acme)

    assert reply.status_code == 429
    assert int(reply["Retry-After"]) > 0
    assert "Save the script" in reply.json()["errors"]["__all__"][0]
    assert "html" not in reply.json()
