"""A script that begins as a draft: until its first version is published, nothing runs it."""

from typing import Any

import pytest

from accounts.models import Organisation
from accounts.scopes import Scope
from hooks.flows.hooks import IssuedHook
from jobs.queue.claim import Turns, claim_due_runs
from scripts_engine.models import Release, Run, Script
from tests.client import Client
from tests.factories import admin_graphql, make_hook, make_script, token_with
from tests.hooks.calls import path_of
from tests.scripts_engine.plans.manifests import a_script, manifest
from tests.written import nothing_written

PLAN = "mutation($manifest: JSON!) { planManifest(manifest: $manifest) { id } }"
APPLY = """mutation($id: ID!) {
    applyPlan(id: $id, publish: false) { release { changes { action } } } }"""
PUBLISH = "mutation($id: ID!) { publish(versions: [$id]) { number } }"
SOURCE = "return 'live'"


def begin(organisation: Organisation, **fields: Any) -> Script:
    """The script “sum” as a key that may only write drafts creates it."""
    token = token_with(organisation, Scope.READ_SCRIPTS, Scope.WRITE_DRAFTS)
    item = a_script("sum", SOURCE, enabled=True, **fields)
    address = f"/admin/blobs/{item['source']}"
    header = f"Bearer {token}"
    Client().put(address, SOURCE, content_type="text/plain", HTTP_AUTHORIZATION=header)
    document = manifest(scripts=[item])
    plan = admin_graphql(PLAN, token, manifest=document).data["planManifest"]
    answer = admin_graphql(APPLY, token, id=plan["id"])
    assert answer.errors == []
    return Script.objects.get(name="sum")


def call(issued: IssuedHook) -> tuple[int, bytes]:
    answer = Client().post(path_of(issued), b"x", content_type="text/plain")
    return answer.status_code, answer.content


def publish_draft(script: Script, token: str) -> None:
    draft = script.versions.get()
    assert admin_graphql(PUBLISH, token, id=str(draft.pk)).errors == []


def test_its_hook_answers_like_none_until_it_is_published(
    acme: Organisation, acme_token: str
) -> None:
    script = begin(acme)
    issued = make_hook(script)
    unknown = Client().post(path_of(issued, token="mhc_" + "0" * 46)).status_code

    status, _ = call(issued)

    assert (script.is_enabled, status, unknown) == (True, 404, 404)
    assert not Run.objects.exists()
    publish_draft(script, acme_token)
    assert call(issued) == (200, b"live")


def test_a_queued_run_waits_until_it_is_published(acme: Organisation, acme_token: str) -> None:
    script = begin(acme)
    enqueue = "mutation($id: ID!) { enqueueRun(script: $id) { status } }"
    queued = admin_graphql(enqueue, acme_token, id=str(script.pk)).data["enqueueRun"]

    before = claim_due_runs(1, Turns()).claimed
    publish_draft(script, acme_token)
    after = claim_due_runs(1, Turns()).claimed

    assert (queued["status"], len(before), len(after)) == ("Queued", 0, 1)


@pytest.mark.parametrize(
    ("mutation", "field"),
    [
        ("runScript(script: $script) { id }", "version"),
        ("sendTestEvent(hook: $hook) { id }", "hook"),
    ],
)
def test_it_is_not_run_by_hand_without_a_version(
    acme: Organisation, acme_token: str, mutation: str, field: str
) -> None:
    script = begin(acme)
    hook = make_hook(script).hook
    name = "$script: ID!" if "$script" in mutation else "$hook: ID!"

    with nothing_written():
        answer = admin_graphql(
            f"mutation({name}) {{ {mutation} }}",
            acme_token,
            **({"script": str(script.pk)} if "$script" in mutation else {"hook": str(hook.pk)}),
        )

    assert (answer.code, answer.errors[0]["extensions"]["field"]) == ("BAD_USER_INPUT", field)


def test_its_draft_runs_where_it_is_named(acme: Organisation, acme_token: str) -> None:
    script = begin(acme)
    run = """mutation($script: ID!, $version: ID) {
        runScript(script: $script, version: $version) { responseBody } }"""

    answer = admin_graphql(
        run, acme_token, script=str(script.pk), version=str(script.versions.get().pk)
    )

    assert answer.data["runScript"]["responseBody"] == "live"


def test_a_library_that_was_never_published_is_not_found(
    acme: Organisation, acme_token: str
) -> None:
    begin(acme, library=True)
    create = """mutation { createScript(name: "other", source: "return require('sum')") { id } }"""

    answer = admin_graphql(create, acme_token)

    assert answer.code == "BAD_USER_INPUT"
    assert not Script.objects.filter(name="other").exists()


def test_it_is_in_no_manifest(acme: Organisation, acme_token: str) -> None:
    begin(acme)

    written = admin_graphql("{ manifest }", acme_token).data["manifest"]

    assert written["scripts"] == []


def test_undoing_the_first_release_of_a_source_takes_the_script_off_the_air(
    acme: Organisation, acme_token: str
) -> None:
    script = begin(acme)
    issued = make_hook(script)
    publish_draft(script, acme_token)
    release = Release.objects.latest("number")
    undo = "mutation($id: ID!) { undoRelease(id: $id) { number } }"

    answer = admin_graphql(undo, acme_token, id=str(release.pk))

    assert answer.errors == []
    assert call(issued)[0] == 404


def test_a_live_script_of_the_same_organisation_is_called_as_before(acme: Organisation) -> None:
    begin(acme)

    assert call(make_hook(make_script(acme, SOURCE, "other"))) == (200, b"live")
