"""Manifests and plans at /admin/graphql: answers, refusals, and the wall between tenants."""

import json
import uuid
from typing import Any

import pytest

from accounts.flows.api_keys import issue_api_key
from accounts.models import AuthEvent, Organisation
from accounts.scopes import Scope
from scripts_engine.models import Plan, Release, Script
from tests import factories
from tests.factories import admin_graphql, make_script
from tests.scripts_engine.plans.manifests import (
    a_script,
    digest,
    manifest,
    plan_of,
    planned,
    upload,
)
from tests.written import nothing_written

PLAN = """
mutation($manifest: JSON!, $prune: Boolean) {
  planManifest(manifest: $manifest, prune: $prune) {
    id changes { kind name action diff } problems { path code message } secretsMissing expiresAt
  }
}
"""
APPLY = """
mutation($id: ID!, $note: String, $publish: Boolean) {
  applyPlan(id: $id, note: $note, publish: $publish) {
    release { number note by changes { kind name action } }
  }
}
"""
SHOW = "query($id: ID!) { plan(id: $id) { id changes { name diff } problems { code } } }"


def token_with(organisation: Organisation, *scopes: Scope) -> str:
    issued = issue_api_key(organisation, name="ci", scopes=frozenset(scopes))
    return factories.open_session(factories.api_key_login(issued))


def test_a_program_plans_and_applies(acme: Organisation, acme_token: str) -> None:
    make_script(acme, "return 1", "sum")
    upload(acme, "return 2")
    document = manifest(scripts=[a_script("sum", "return 2")])

    plan = admin_graphql(PLAN, acme_token, manifest=document).data["planManifest"]
    answer = admin_graphql(APPLY, acme_token, id=plan["id"], note="Two").data["applyPlan"]

    [change] = plan["changes"]
    assert (change["kind"], change["name"], change["action"]) == ("Script", "sum", "Update")
    assert "-return 1\n+return 2" in change["diff"]
    assert (plan["problems"], plan["secretsMissing"]) == ([], [])
    assert answer["release"] == {
        "number": 2,
        "note": "Two",
        "by": "warehouse",
        "changes": [{"kind": "Script", "name": "sum", "action": "Update"}],
    }
    assert Script.objects.get().source == "return 2"


def test_a_plan_tells_what_a_new_script_is(acme: Organisation, acme_token: str) -> None:
    upload(acme, "return 2")
    document = manifest(scripts=[a_script("sum", "return 2")])

    plan = admin_graphql(PLAN, acme_token, manifest=document).data["planManifest"]

    [change] = plan["changes"]
    assert change["action"] == "Create"
    assert change["diff"].splitlines()[0] == "Created."
    assert "+return 2" in change["diff"]


def test_problems_have_paths(acme_token: str) -> None:
    answer = admin_graphql(PLAN, acme_token, manifest=manifest(scripts=[{"name": "sum"}]))

    assert answer.data["planManifest"]["problems"] == [
        {"path": "scripts[0].source", "code": "required", "message": "This is required."}
    ]
    assert answer.data["planManifest"]["changes"] == []


def test_a_manifest_may_stand_in_the_document(acme: Organisation, acme_token: str) -> None:
    upload(acme, "return 1")
    literal = f'{{version: 1, scripts: [{{name: "sum", source: "{digest("return 1")}"}}]}}'

    answer = admin_graphql(
        f"mutation {{ planManifest(manifest: {literal}) {{ changes {{ name action }} }} }}",
        acme_token,
    )

    assert answer.data["planManifest"]["changes"] == [{"name": "sum", "action": "Create"}]


def test_a_literal_that_is_nested_too_deeply_is_refused(acme_token: str) -> None:
    literal = "[" * 3_000 + "]" * 3_000
    with nothing_written():
        answer = admin_graphql(
            f"mutation {{ planManifest(manifest: {literal}) {{ id }} }}", acme_token
        )

    assert answer.errors[0]["extensions"]["code"] != "INTERNAL"
    assert answer.data is None


@pytest.mark.parametrize("value", [None, 1, "x", [], {"a": {"b": [None, 1e308, "\x00"]}}])
def test_other_json_is_a_problem(acme_token: str, value: Any) -> None:
    answer = admin_graphql(PLAN, acme_token, manifest=value)

    assert answer.code == "BAD_USER_INPUT" if value is None else answer.data is not None
    assert not Plan.objects.filter(problems=[]).exists()


def test_the_manifest_is_data(acme: Organisation, acme_token: str) -> None:
    make_script(acme, "return 1", "sum")

    answer = admin_graphql("{ manifest }", acme_token)

    assert answer.data["manifest"]["scripts"] == [
        {"name": "sum", "source": digest("return 1"), "enabled": True}
    ]
    again = admin_graphql(PLAN, acme_token, manifest=answer.data["manifest"], prune=True)
    assert again.data["planManifest"]["changes"] == []


def test_a_manifest_of_the_largest_size_fits_a_request(acme_token: str) -> None:
    document = manifest(scripts=["ä" * 100_000, "ä" * 150_000])
    assert len(json.dumps(document)) > 2 * 512 * 1024

    answer = admin_graphql(PLAN, acme_token, manifest=manifest(scripts=["ä" * 80_000]))

    assert answer.data["planManifest"]["problems"][0]["code"] == "wrong-type"


# --- Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [SHOW, APPLY])
def test_an_id_that_is_not_a_uuid_is_named(acme_token: str, query: str) -> None:
    answer = admin_graphql(query, acme_token, id="x")

    assert answer.code == "NOT_FOUND"
    assert answer.errors[0]["message"] == (
        "There is no such plan: its id is a UUID, and this is not one."
    )


def test_an_unknown_plan_is_not_shown(acme_token: str) -> None:
    answer = admin_graphql(SHOW, acme_token, id=str(uuid.uuid4()))

    assert (answer.data, answer.code) == ({"plan": None}, "NOT_FOUND")


@pytest.mark.parametrize(
    "query",
    [
        "{ manifest }",
        '{ missingBlobs(digests: ["x"]) }',
        '{ plan(id: "x") { id } }',
        "mutation { planManifest(manifest: {version: 1}) { id } }",
        'mutation { applyPlan(id: "x") { release { id } } }',
    ],
)
def test_each_field_needs_read_scripts(acme: Organisation, query: str) -> None:
    token = token_with(acme, Scope.PUBLISH, Scope.WRITE_DRAFTS, Scope.WRITE_HOOKS)

    with nothing_written(besides=AuthEvent):
        answer = admin_graphql(query, token)

    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert "ReadScripts" in answer.errors[0]["extensions"]["scope"]


def test_applying_needs_the_scope_of_each_item(acme: Organisation) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS, Scope.WRITE_HOOKS)
    upload(acme, "return 1")
    plan = planned(acme, a_script())

    with nothing_written(besides=AuthEvent):
        answer = admin_graphql(APPLY, token, id=str(plan.pk))

    assert answer.code == "FORBIDDEN"
    assert answer.errors[0]["extensions"]["scope"] == "WriteDrafts Publish"
    assert not Script.objects.exists()


def test_a_used_plan_conflicts(acme: Organisation, acme_token: str) -> None:
    upload(acme, "return 1")
    plan = planned(acme, a_script())
    admin_graphql(APPLY, acme_token, id=str(plan.pk))

    with nothing_written():
        answer = admin_graphql(APPLY, acme_token, id=str(plan.pk))

    assert answer.code == "CONFLICT"
    assert Release.objects.count() == 1


def test_a_stale_plan_conflicts_by_name(acme: Organisation, acme_token: str) -> None:
    upload(acme, "return 1")
    plan = planned(acme, a_script())
    make_script(acme, "return 1", "sum")

    answer = admin_graphql(APPLY, acme_token, id=str(plan.pk))

    assert answer.code == "CONFLICT"
    assert "“sum”" in answer.errors[0]["message"]


@pytest.mark.parametrize("id", ["", "x", "\x00", "00000000-0000-0000-0000-000000000000"])
def test_an_unknown_plan_is_not_found(acme_token: str, id: str) -> None:
    with nothing_written():
        applied = admin_graphql(APPLY, acme_token, id=id)
        shown = admin_graphql(SHOW, acme_token, id=id)

    assert applied.code == "NOT_FOUND"
    assert shown.data == {"plan": None}


def test_a_plan_of_another_organisation_is_not_found(acme_token: str, globex: Organisation) -> None:
    plan = plan_of(globex, manifest())

    with nothing_written():
        applied = admin_graphql(APPLY, acme_token, id=str(plan.pk))
        shown = admin_graphql(SHOW, acme_token, id=str(plan.pk))

    assert applied.code == "NOT_FOUND"
    assert shown.data == {"plan": None}


def test_a_plan_shows_no_difference_from_what_has_changed(
    acme: Organisation, acme_token: str
) -> None:
    script = make_script(acme, "return 1", "sum")
    upload(acme, "return 2")
    plan = planned(acme, a_script("sum", "return 2"))
    Script.objects.filter(pk=script.pk).update(timeout_seconds=1)

    answer = admin_graphql(SHOW, acme_token, id=str(plan.pk))

    assert answer.data["plan"]["changes"] == [{"name": "sum", "diff": None}]


@pytest.mark.parametrize("note", ["x" * 501, "\x00"])
def test_an_invalid_note_is_refused(acme: Organisation, acme_token: str, note: str) -> None:
    upload(acme, "return 1")
    plan = planned(acme, a_script())

    with nothing_written():
        answer = admin_graphql(APPLY, acme_token, id=str(plan.pk), note=note)

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == "note"
