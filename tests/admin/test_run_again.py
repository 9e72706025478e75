"""Repeating a run: its recorded payload with the current version."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Organisation, User
from hooks.models import Hook
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Run, Script
from scripts_engine.runs.spec import NOBODY
from scripts_engine.sandbox import SandboxBusy, SandboxPool, SandboxUnavailable
from tests import factories
from tests.admin.pages import logged_in, page_of, run_of, text_of
from tests.written import nothing_written

HEADERS = (("Content-Type", "application/json"), ("X-Shop", "tea"))


@pytest.fixture
def run(acme_hook: Hook) -> Run:
    return run_of(acme_hook, body=b'{"id": 7}\xff\x00', headers=HEADERS)


def newest() -> Run:
    run = Run.objects.first()
    assert run is not None
    return run


def test_the_script_gets_the_recorded_payload(as_bob: Client, bob: User, run: Run) -> None:
    response = as_bob.post(page_of(run, "again"))

    new = newest()
    assert response.status_code == 302
    assert response["Location"] == page_of(new)
    assert Run.objects.count() == 2
    assert (new.request_method, new.request_query) == ("POST", "a=1")
    assert new.request_headers == [list(header) for header in HEADERS]
    assert bytes(new.request_body) == b'{"id": 7}\xff\x00'
    assert bytes(new.response_body) == b'{"id": 7}\xff\x00'
    assert (new.trigger, new.started_by, new.hook_id) == ("admin", bob, None)
    assert new.client_address == "127.0.0.1"


def test_no_run_of_a_disabled_organisation_is_repeated(
    as_bob: Client, acme: Organisation, run: Run
) -> None:
    assert page_of(run, "again") in text_of(as_bob.get(page_of(run)))
    acme.is_active = False
    acme.save()

    text = text_of(as_bob.post(page_of(run, "again"), follow=True))

    assert "The organisation is switched off" in text
    assert page_of(run, "again") not in text
    assert Run.objects.count() == 1


def test_the_new_page_names_the_original_run(as_bob: Client, run: Run) -> None:
    text = text_of(as_bob.post(page_of(run, "again"), follow=True))

    assert "Replayed the payload of" in text
    assert f'href="{page_of(run)}"' in text


def test_the_script_finds_query_method_and_headers(as_bob: Client, acme: Organisation) -> None:
    source = 'return params.get("method") .. params.query("a") .. params.header("X-Shop")'
    hook = factories.make_hook(factories.make_script(acme, source)).hook

    as_bob.post(page_of(run_of(hook, headers=HEADERS), "again"))

    assert factories.reply_of(newest()) == "POST1tea"


def test_the_current_version_runs(as_bob: Client, run: Run, acme_script: Script) -> None:
    update_script(acme_script, source="return 'changed'", author=NOBODY)

    as_bob.post(page_of(run, "again"))

    assert factories.reply_of(newest()) == "changed"
    assert newest().script_version == Script.objects.get().current_version


def test_headers_that_were_not_stored_are_omitted_and_named(
    as_bob: Client, acme_hook: Hook
) -> None:
    run = run_of(acme_hook, headers=(("Authorization", "Basic c2VjcmV0"), *HEADERS))

    text = text_of(as_bob.post(page_of(run, "again"), follow=True))

    assert newest().request_headers == [list(header) for header in HEADERS]
    assert "Omitted, because not stored: Authorization." in text


def test_a_disabled_script_runs_too(as_bob: Client, run: Run) -> None:
    Script.objects.update(is_enabled=False)

    as_bob.post(page_of(run, "again"))

    assert (Run.objects.count(), newest().status) == (2, "succeeded")


def test_getting_the_address_runs_nothing(as_bob: Client, run: Run) -> None:
    with nothing_written():
        response = as_bob.get(page_of(run, "again"))

    assert (response.status_code, response["Location"]) == (302, page_of(run))


def test_without_the_forms_token_nothing_runs(bob: User, run: Run) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    response = client.post(page_of(run, "again"))

    assert response.status_code == 403
    assert Run.objects.count() == 1


def test_charlie_cannot_repeat_a_run_of_acme(charlie: User, run: Run) -> None:
    as_charlie = logged_in(charlie)
    with nothing_written():
        response = as_charlie.post(page_of(run, "again"))

    assert response.status_code == 404
    assert str(run.pk) not in text_of(response)
    assert "echo" not in text_of(response)


def test_root_can_repeat_a_run_of_acme(root: User, as_root: Client, run: Run) -> None:
    as_root.post(page_of(run, "again"))

    assert (Run.objects.count(), newest().started_by) == (2, root)


def test_a_user_without_organisations_cannot_repeat_a_run(as_erin: Client, run: Run) -> None:
    response = as_erin.post(page_of(run, "again"))

    assert response.status_code == 403
    assert Run.objects.count() == 1


def test_repeating_a_run_requires_a_login(run: Run) -> None:
    response = Client().post(page_of(run, "again"))

    assert response.status_code == 302
    assert "/admin/login/" in response["Location"]
    assert Run.objects.count() == 1


def test_runs_of_a_deleted_script_cannot_be_repeated(
    as_bob: Client, run: Run, acme_script: Script
) -> None:
    offered = text_of(as_bob.get(page_of(run)))
    delete_script(acme_script)

    response = as_bob.post(page_of(run, "again"))

    text = text_of(as_bob.get(page_of(run)))
    assert page_of(run, "again") in offered
    assert f"{page_of(acme_script)}?run={run.pk}" in offered
    assert response.status_code == 404
    assert Run.objects.count() == 1
    assert page_of(run, "again") not in text
    assert "?run=" not in text


@pytest.mark.parametrize("why", [SandboxBusy(retry_after=1), SandboxUnavailable()])
def test_the_page_says_when_no_sandbox_is_free(
    as_bob: Client, run: Run, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    def refuse(*args: Any) -> None:
        raise why

    monkeypatch.setattr(SandboxPool, "run", refuse)

    response = as_bob.post(page_of(run, "again"), follow=True)

    assert response.redirect_chain == [(page_of(run), 302)]
    assert "Nothing ran; try again." in text_of(response)
    assert Run.objects.count() == 1
