"""The run storage quota and runs without payload, for administrators and programs."""

import json

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation
from core.admin.display import size_text
from hooks.models import Hook
from scripts_engine.models import Run, RunStorage, Script
from scripts_engine.runs.quota import remove_payloads
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.postgresql

MIB = 1024**2


@pytest.fixture
def emptied(acme: Organisation) -> Run:
    """A run that had a payload of 12 KB."""
    hook: Hook = factories.make_hook(factories.make_script(acme)).hook
    run = factories.make_past_run(
        hook,
        timezone.now(),
        request_method="POST",
        request_body=b"x" * 12 * 1024,
        response_body=b"reply",
        logs=[{"at": 1.0, "level": "info", "text": "line"}],
    )
    remove_payloads([run.pk])
    return run


def test_home_and_the_organisation_show_the_storage_used(
    as_bob: Client, acme: Organisation
) -> None:
    removed_before = timezone.now().replace(year=2026, month=11, day=3)
    RunStorage.objects.create(
        organisation=acme, bytes_used=412 * MIB, removed_before=removed_before
    )

    for page in ("/admin/", page_of(acme)):
        text = text_of(as_bob.get(page)).replace("\N{NO-BREAK SPACE}", " ")
        assert "412 MiB of 1 GiB" in text
        assert "payloads of runs before" in text
        assert "3 Nov 2026" in text


def test_bob_does_not_see_the_storage_of_others(as_bob: Client, globex: Organisation) -> None:
    RunStorage.objects.create(organisation=globex, bytes_used=412 * MIB)

    assert "412" not in text_of(as_bob.get("/admin/"))


def test_bob_cannot_change_his_quota(as_bob: Client, acme: Organisation) -> None:
    form = {"name": "Acme", "run_bytes_quota": "0", "memberships-TOTAL_FORMS": "0"}
    as_bob.post(page_of(acme), form | {"memberships-INITIAL_FORMS": "0"})

    acme.refresh_from_db()
    assert acme.run_bytes_quota is None


def test_root_gives_an_organisation_its_own_quota(as_root: Client, acme: Organisation) -> None:
    form = {"name": "Acme", "is_active": "on", "run_bytes_quota": str(5 * MIB)}
    inline = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    as_root.post(page_of(acme), form | inline)

    acme.refresh_from_db()
    assert acme.run_bytes_quota == 5 * MIB


def test_the_page_of_a_run_says_that_its_payload_was_removed(as_bob: Client, emptied: Run) -> None:
    text = text_of(as_bob.get(page_of(emptied)))

    assert "Payload removed" in text
    assert "12.0" in text
    assert ">Replay<" not in text
    assert "No log output" not in text


def test_a_run_without_its_payload_is_not_run_again(as_bob: Client, emptied: Run) -> None:
    response = as_bob.post(page_of(emptied, "again"), follow=True)

    assert "payload was removed" in text_of(response)
    assert Run.objects.count() == 1


def test_a_removed_payload_cannot_be_tried(as_bob: Client, emptied: Run) -> None:
    payloads = page_of(emptied.script, "payloads")

    assert as_bob.get(payloads, {"run": emptied.pk}).status_code == 404
    call = {"source": "return 1", "method": "POST", "body_of": str(emptied.pk)}
    answer = as_bob.post(
        page_of(emptied.script, "try"), json.dumps(call), content_type="application/json"
    )
    assert "payload of this run no longer exists" in answer.content.decode()
    assert Run.objects.count() == 1


def test_removed_payloads_are_not_offered(as_bob: Client, emptied: Run) -> None:
    script: Script = emptied.script
    RunStorage.objects.update(removed_before=emptied.started_at)

    assert as_bob.get(page_of(script, "payloads")).json()["requests"] == []


def test_programs_see_the_quota_and_its_use(acme: Organisation) -> None:
    token = factories.open_session(factories.api_key_login(factories.make_api_key(acme)))
    query = "{ organisation { runBytesUsed runBytesQuota } }"

    nothing = factories.admin_graphql(query, token).data["organisation"]
    RunStorage.objects.create(organisation=acme, bytes_used=3 * 1024**3)
    Organisation.objects.update(run_bytes_quota=0)
    without_quota = factories.admin_graphql(query, token).data["organisation"]

    assert nothing == {"runBytesUsed": 0, "runBytesQuota": 1024**3}
    assert without_quota == {"runBytesUsed": 3 * 1024**3, "runBytesQuota": None}


RUNS = """{ runs { nodes { payloadRemovedAt requestBytes responseBytes requestBody requestBodyBase64
    responseBody responseBodyBase64 status responseStatus logs { text } } } }"""


def test_programs_see_that_a_payload_was_removed(acme: Organisation, emptied: Run) -> None:
    token = factories.open_session(factories.api_key_login(factories.make_api_key(acme)))

    [run] = factories.admin_graphql(RUNS, token).data["runs"]["nodes"]

    assert run.pop("payloadRemovedAt") is not None
    assert run == {
        "requestBytes": 12 * 1024,
        "responseBytes": 5,
        "requestBody": None,
        "requestBodyBase64": "",
        "responseBody": None,
        "responseBodyBase64": "",
        "status": "Succeeded",
        "responseStatus": 200,
        "logs": [],
    }


@pytest.mark.parametrize(
    ("count", "text"),
    [(-1, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536 * MIB, "1.5 GiB"),
     (412 * MIB, "412 MiB"), (5 * 1024**5, "5120 TiB")],
)  # fmt: skip
def test_sizes_are_formatted(count: int, text: str) -> None:
    assert size_text(count).replace("\N{NO-BREAK SPACE}", " ") == text
