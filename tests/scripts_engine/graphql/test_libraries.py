"""Libraries at /admin/graphql: created, required, listed, updated with what requires them."""

from typing import Any

import pytest

from accounts.models import Organisation
from accounts.scopes import Scope
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Release, Run, Script, ScriptVersion
from scripts_engine.runs.spec import NOBODY
from tests.factories import admin_graphql, make_script, token_with

pytestmark = pytest.mark.django_db

CREATE = """mutation($name: String!, $source: String!, $library: Boolean) {
    createScript(name: $name, source: $source, isLibrary: $library) {
        id isLibrary live { id libraries { number source } } requiredBy { name } } }"""
SAVE_DRAFT = """mutation($id: ID!, $source: String!) {
    saveDraft(script: $id, source: $source) { id libraries { source } } }"""
UPDATE_DEPENDENTS = """mutation($id: ID!, $note: String) {
    updateDependents(library: $id, note: $note) { number note changes { name action } } }"""
RUN = """mutation($id: ID!, $source: String) {
    runScript(script: $id, source: $source) { status responseBody error { message line } } }"""
REQUIRED_BY = """query($id: ID!) { script(id: $id) { requiredBy { name } } }"""
DELETE = "mutation($id: ID!) { deleteScript(id: $id) }"
USING = 'return require("money")'


def refused(answer: Any) -> tuple[str, str, int | None]:
    extensions = answer.errors[0]["extensions"]
    return answer.code, extensions.get("field"), extensions.get("line")


@pytest.fixture
def money(acme: Organisation) -> Script:
    return make_script(acme, "return 'old'", "money", is_library=True)


@pytest.fixture
def using(acme: Organisation, money: Script) -> Script:
    return make_script(acme, USING, "using")


def test_a_library_is_created_and_required(acme_token: str) -> None:
    library = admin_graphql(CREATE, acme_token, name="money", source="return 1", library=True)
    script = admin_graphql(CREATE, acme_token, name="using", source=USING)

    made = library.data["createScript"]
    assert (made["isLibrary"], made["requiredBy"]) == (True, [])
    assert script.data["createScript"]["isLibrary"] is False
    assert script.data["createScript"]["live"]["libraries"] == [{"number": 1, "source": "return 1"}]
    listed = admin_graphql(REQUIRED_BY, acme_token, id=made["id"])
    assert listed.data["script"]["requiredBy"] == [{"name": "using"}]


@pytest.mark.parametrize("source", ['\nrequire("money")', '\nrequire("theirs")'])
def test_an_unknown_and_a_foreign_library_are_refused_with_name_and_line(
    acme_token: str, globex: Organisation, source: str
) -> None:
    make_script(globex, "return 1", "theirs", is_library=True)
    answer = admin_graphql(CREATE, acme_token, name="using", source=source)

    assert refused(answer) == ("BAD_USER_INPUT", "source", 2)
    name = source.split('"')[1]
    assert answer.errors[0]["message"] == f"using:2: There is no library “{name}”."
    assert not Script.objects.filter(organisation__name="Acme").exists()


def test_a_draft_that_requires_nothing_known_is_not_saved(acme_token: str, using: Script) -> None:
    answer = admin_graphql(SAVE_DRAFT, acme_token, id=str(using.pk), source="require 'x'")

    assert refused(answer) == ("BAD_USER_INPUT", "source", 1)
    assert using.versions.count() == 1


def test_a_source_runs_with_libraries(acme_token: str, using: Script) -> None:
    source = "return require('money') .. '!'"
    answer = admin_graphql(RUN, acme_token, id=str(using.pk), source=source)

    assert answer.data["runScript"] == {
        "status": "Succeeded",
        "responseBody": "old!",
        "error": None,
    }


def test_a_source_with_an_unknown_library_does_not_run(acme_token: str, using: Script) -> None:
    answer = admin_graphql(RUN, acme_token, id=str(using.pk), source="\nrequire 'x'")

    assert refused(answer) == ("BAD_USER_INPUT", "source", 2)
    assert Run.objects.count() == 0


def test_a_library_does_not_run(acme_token: str, money: Script) -> None:
    answer = admin_graphql(RUN, acme_token, id=str(money.pk))

    assert refused(answer) == ("BAD_USER_INPUT", "script", None)
    assert Run.objects.count() == 0


def test_dependents_are_updated_with_the_callers_draft(
    acme_token: str, money: Script, using: Script
) -> None:
    admin_graphql(SAVE_DRAFT, acme_token, id=str(money.pk), source="return 'new'")
    answer = admin_graphql(UPDATE_DEPENDENTS, acme_token, id=str(money.pk), note="new money")

    assert answer.data["updateDependents"] == {
        "number": 3,
        "note": "new money",
        "changes": [
            {"name": "money", "action": "Update"},
            {"name": "using", "action": "Update"},
        ],
    }
    run = admin_graphql(RUN, acme_token, id=str(using.pk))
    assert run.data["runScript"]["responseBody"] == "new"


def test_dependents_that_are_up_to_date_are_refused(
    acme_token: str, money: Script, using: Script
) -> None:
    answer = admin_graphql(UPDATE_DEPENDENTS, acme_token, id=str(money.pk))

    assert refused(answer) == ("BAD_USER_INPUT", "library", None)
    assert Release.objects.count() == 2


def test_another_organisations_library_is_not_found(acme_token: str, globex: Organisation) -> None:
    theirs = make_script(globex, "return 1", "theirs", is_library=True)
    answer = admin_graphql(UPDATE_DEPENDENTS, acme_token, id=str(theirs.pk))

    assert answer.code == "NOT_FOUND"


@pytest.mark.parametrize("scope", [Scope.WRITE_DRAFTS, Scope.PUBLISH])
def test_updating_dependents_needs_both_scopes(
    acme: Organisation, money: Script, using: Script, scope: Scope
) -> None:
    update_script(money, source="return 'new'", author=NOBODY)
    both = {Scope.WRITE_DRAFTS, Scope.PUBLISH, Scope.READ_SCRIPTS}
    variables = {"id": str(money.pk)}
    narrow = admin_graphql(UPDATE_DEPENDENTS, token_with(acme, *both - {scope}), **variables)
    before = ScriptVersion.objects.count()

    assert narrow.code == "FORBIDDEN"
    assert narrow.errors[0]["extensions"]["scope"] == scope.value
    assert ScriptVersion.objects.count() == before
    assert (
        admin_graphql(UPDATE_DEPENDENTS, token_with(acme, *both, name="both"), **variables).errors
        == []
    )


def test_a_required_library_is_not_deleted(acme_token: str, money: Script, using: Script) -> None:
    answer = admin_graphql(DELETE, acme_token, id=str(money.pk))

    assert refused(answer) == ("BAD_USER_INPUT", "script", None)
    assert "“using”" in answer.errors[0]["message"]
    assert Script.objects.existing().filter(pk=money.pk).exists()
