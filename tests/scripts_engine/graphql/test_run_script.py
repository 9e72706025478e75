"""``runScript``: which version or source runs, with which request, and who may."""

import json
from typing import Any

import pytest

from accounts.models import Organisation, User
from accounts.scopes import Scope
from scripts_engine.flows.drafts import save_draft
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script, ScriptVersion
from scripts_engine.runs.spec import Author
from tests.factories import NOBODY, GraphQLAnswer, admin_graphql, make_script, token_with

pytestmark = pytest.mark.django_db

RUN = """mutation($script: ID!, $version: ID, $method: String, $q: String, $h: [HeaderInput!],
        $body: String) {
    runScript(script: $script, version: $version, method: $method, query: $q, headers: $h,
        body: $body) { status isDraft scriptVersion { id } } }"""
RUN_SOURCE = """mutation($script: ID!, $version: ID, $source: String) {
    runScript(script: $script, version: $version, source: $source) {
        status isDraft scriptVersion { id } } }"""
TELL = """return table.concat({params.get("method"), params.get("query"),
    params.header("X-Shop"), params.get("body")}, "|")"""


@pytest.fixture
def draft(script: Script, bob: User) -> ScriptVersion:
    return save_draft(script, "return 2", author=Author(user=bob))


def runner(organisation: Organisation, *more: Scope) -> str:
    return token_with(organisation, Scope.READ_SCRIPTS, Scope.RUN_SCRIPTS, *more)


def reply() -> str:
    return bytes(Run.objects.get().response_body).decode()


def field_of(answer: GraphQLAnswer) -> Any:
    return answer.errors[0]["extensions"].get("field")


def test_a_draft_runs_with_write_drafts_alone(
    acme: Organisation, script: Script, draft: ScriptVersion
) -> None:
    ids = {"script": str(script.pk), "version": str(draft.pk)}
    refused = admin_graphql(RUN, runner(acme), **ids)
    runs, has_run = Run.objects.count(), ScriptVersion.objects.get(pk=draft.pk).has_run
    answer = admin_graphql(RUN, runner(acme, Scope.WRITE_DRAFTS), **ids)

    assert (refused.code, refused.errors[0]["extensions"]["scope"]) == ("FORBIDDEN", "WriteDrafts")
    assert (runs, has_run) == (0, False)
    assert answer.data["runScript"] == {
        "status": "Succeeded",
        "isDraft": True,
        "scriptVersion": {"id": str(draft.pk)},
    }
    assert (reply(), ScriptVersion.objects.get(pk=draft.pk).has_run) == ("2", True)


def test_a_draft_that_was_superseded_needs_write_drafts_too(
    acme: Organisation, script: Script, draft: ScriptVersion, bob: User
) -> None:
    ids = {"script": str(script.pk), "version": str(draft.pk)}
    admin_graphql(RUN, runner(acme, Scope.WRITE_DRAFTS), **ids)
    save_draft(script, "return 3", author=Author(user=bob))
    answer = admin_graphql(RUN, runner(acme), **ids)

    assert answer.errors[0]["extensions"]["scope"] == "WriteDrafts"
    assert Run.objects.count() == 1


def test_a_past_version_runs_without_write_drafts(acme: Organisation, script: Script) -> None:
    past = script.versions.get()
    update_script(script, author=NOBODY, source="return 2")
    answer = admin_graphql(
        RUN, runner(acme), script=str(script.pk), version=str(past.pk), body="hello"
    )

    assert answer.data["runScript"]["scriptVersion"] == {"id": str(past.pk)}
    assert not answer.data["runScript"]["isDraft"]
    assert reply() == "hello"


def test_a_source_needs_write_drafts(acme: Organisation, script: Script) -> None:
    variables = {"script": str(script.pk), "source": "return 3"}
    refused = admin_graphql(RUN_SOURCE, runner(acme), **variables)
    runs = Run.objects.count()
    answer = admin_graphql(RUN_SOURCE, runner(acme, Scope.WRITE_DRAFTS), **variables)

    assert (refused.status, refused.code, runs) == (403, "FORBIDDEN", 0)
    assert answer.data["runScript"] == {
        "status": "Succeeded",
        "isDraft": True,
        "scriptVersion": None,
    }
    assert (reply(), script.versions.count()) == ("3", 1)


def test_bodies_of_what_comes_back_need_read_payloads(acme: Organisation, script: Script) -> None:
    run = f'mutation {{ runScript(script: "{script.pk}") {{ responseBody }} }}'
    answer = admin_graphql(run, runner(acme))

    assert (answer.status, answer.errors[0]["extensions"]["scope"]) == (403, "ReadPayloads")
    assert Run.objects.count() == 0


def test_the_request_is_the_given_one(acme: Organisation, acme_token: str) -> None:
    script = make_script(acme, TELL)
    answer = admin_graphql(
        RUN,
        acme_token,
        script=str(script.pk),
        method="PUT",
        q="?a=1",
        h=[{"name": "X-Shop", "value": " ä "}],
        body="{}",
    )

    assert answer.errors == []
    assert bytes(Run.objects.get().response_body) == "PUT|a=1|ä|{}".encode("latin-1")


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"method": "TRACE"}, "method"),
        ({"q": "a b"}, "query"),
        ({"h": [{"name": "a b", "value": ""}]}, "headers"),
        ({"h": [{"name": "a", "value": "b\nc: d"}]}, "headers"),
        ({"h": [{"name": "a", "value": "€"}]}, "headers"),
        ({"h": [{"name": "a", "value": "x" * 8192}]}, "headers"),
        ({"h": [{"name": "a", "value": "x"}] * 101}, "headers"),
    ],
)
def test_a_request_that_is_none_is_refused(
    script: Script, acme_token: str, variables: dict[str, Any], field: str
) -> None:
    answer = admin_graphql(RUN, acme_token, script=str(script.pk), **variables)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field), json.dumps(answer.errors)
    assert Run.objects.count() == 0


@pytest.mark.parametrize("source", ["x" * (64 * 1024 + 1), "\0"])
def test_a_source_that_is_none_is_refused(script: Script, acme_token: str, source: str) -> None:
    answer = admin_graphql(RUN_SOURCE, acme_token, script=str(script.pk), source=source)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "source")
    assert Run.objects.count() == 0


def test_a_version_and_a_source_together_are_refused(
    script: Script, draft: ScriptVersion, acme_token: str
) -> None:
    answer = admin_graphql(
        RUN_SOURCE, acme_token, script=str(script.pk), version=str(draft.pk), source="return 1"
    )

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "source")
    assert Run.objects.count() == 0


def test_a_version_of_another_script_is_not_found(
    acme: Organisation, globex: Organisation, script: Script, acme_token: str
) -> None:
    other = make_script(acme, name="other").versions.get()
    foreign = make_script(globex).versions.get()
    codes = [
        admin_graphql(RUN, acme_token, script=str(script.pk), version=str(version.pk)).code
        for version in (other, foreign)
    ]

    assert codes == ["NOT_FOUND", "NOT_FOUND"]
    assert Run.objects.count() == 0
