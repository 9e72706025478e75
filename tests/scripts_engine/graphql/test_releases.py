"""Drafts, publishing, releases and undo at /admin/graphql."""

import uuid
from typing import Any

import pytest

from accounts.models import AuthEvent, Organisation, User
from accounts.scopes import Scope
from scripts_engine.flows.drafts import save_draft
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.runs.spec import Author
from tests.factories import NOBODY, GraphQLAnswer, admin_graphql, make_script, token_with

pytestmark = pytest.mark.django_db

SAVE_DRAFT = """mutation($script: ID!, $source: String!, $revision: Int) {
    saveDraft(script: $script, source: $source, expectedRevision: $revision) {
        id number source state author release { id } } }"""
DELETE_DRAFT = "mutation($id: ID!) { deleteDraft(id: $id) }"
PUBLISH = """mutation($versions: [ID!]!, $note: String) {
    publish(versions: $versions, note: $note) {
        id number by note undoes { id } changes { kind name action diff } } }"""
UNDO = """mutation($id: ID!, $force: Boolean) {
    undoRelease(id: $id, force: $force) { number undoes { number } changes { action } } }"""
UPDATE = """mutation($id: ID!, $name: String, $source: String, $revision: Int) {
    updateScript(id: $id, name: $name, source: $source, expectedRevision: $revision) {
        revision name live { number } } }"""
RELEASES = """query($script: ID, $since: DateTime, $until: DateTime, $first: Int, $after: String) {
    releases(script: $script, since: $since, until: $until, first: $first, after: $after) {
        nodes { number } totalCount pageInfo { endCursor hasNextPage } } }"""


@pytest.fixture
def draft(script: Script, bob: User) -> ScriptVersion:
    return save_draft(script, "return 2", author=Author(user=bob))


@pytest.fixture
def foreign(globex: Organisation) -> Script:
    return make_script(globex)


def state() -> tuple[Any, ...]:
    """What a refusal must not change."""
    return (
        list(Script.objects.order_by("pk").values("name", "current_version", "revision")),
        list(ScriptVersion.objects.order_by("pk").values("source", "draft_of", "has_run")),
        Release.objects.count(),
    )


def extensions_of(answer: GraphQLAnswer) -> dict[str, Any]:
    extensions: dict[str, Any] = answer.errors[0]["extensions"]
    return extensions


def numbers(answer: GraphQLAnswer) -> list[int]:
    return [node["number"] for node in answer.data["releases"]["nodes"]]


# --- Drafts --------------------------------------------------------------------------------------


def test_a_draft_is_saved_published_and_told_as_a_release(script: Script, acme_token: str) -> None:
    saved = admin_graphql(
        SAVE_DRAFT, acme_token, script=str(script.pk), source="return 2", revision=1
    ).data["saveDraft"]
    published = admin_graphql(PUBLISH, acme_token, versions=[saved["id"]], note="faster").data[
        "publish"
    ]
    query = """query($id: ID!) { script(id: $id) {
        revision isLibrary drafts { id } requiredBy { id }
        live { id state author release { id number } libraries { id } }
        versions { number state author } } }"""
    now = admin_graphql(query, acme_token, id=str(script.pk)).data["script"]

    assert saved == {
        "id": saved["id"],
        "number": 2,
        "source": "return 2",
        "state": "Draft",
        "author": "warehouse",
        "release": None,
    }
    assert published == {
        "id": published["id"],
        "number": 2,
        "by": "warehouse",
        "note": "faster",
        "undoes": None,
        "changes": [
            {
                "kind": "Script",
                "name": "echo",
                "action": "Update",
                "diff": "--- version 1\n+++ version 2\n@@ -1 +1 @@\n"
                '-return params.get("body")\n+return 2',
            }
        ],
    }
    assert now == {
        "revision": 2,
        "isLibrary": False,
        "drafts": [],
        "requiredBy": [],
        "live": {
            "id": saved["id"],
            "state": "Live",
            "author": "warehouse",
            "release": {"id": published["id"], "number": 2},
            "libraries": [],
        },
        "versions": [
            {"number": 2, "state": "Live", "author": "warehouse"},
            {"number": 1, "state": "Past", "author": "Unknown"},
        ],
    }


def test_a_draft_that_does_not_compile_is_refused_with_its_line(
    script: Script, acme_token: str
) -> None:
    before = state()
    answer = admin_graphql(SAVE_DRAFT, acme_token, script=str(script.pk), source="x\n=")

    assert (answer.status, answer.code) == (200, "BAD_USER_INPUT")
    assert (extensions_of(answer)["field"], extensions_of(answer)["line"]) == ("source", 2)
    assert state() == before


def test_a_draft_for_an_older_revision_is_a_conflict(script: Script, acme_token: str) -> None:
    admin_graphql(UPDATE, acme_token, id=str(script.pk), source="return 2")
    changed, before = Script.objects.get(), state()
    answer = admin_graphql(
        SAVE_DRAFT, acme_token, script=str(script.pk), source="return 3", revision=1
    )

    assert (answer.status, answer.code) == (200, "CONFLICT")
    assert extensions_of(answer) == {
        "code": "CONFLICT",
        "by": "warehouse",
        "at": changed.revised_at.isoformat(),
    }
    assert state() == before


def test_a_change_of_an_older_revision_is_a_conflict(script: Script, acme_token: str) -> None:
    admin_graphql(UPDATE, acme_token, id=str(script.pk), name="new", revision=1)
    before = state()
    answer = admin_graphql(UPDATE, acme_token, id=str(script.pk), name="newer", revision=1)

    assert (answer.status, answer.code) == (200, "CONFLICT")
    assert extensions_of(answer)["by"] == "warehouse"
    assert state() == before


def test_a_name_that_exists_is_refused_by_its_field(script: Script, acme_token: str) -> None:
    create = 'mutation { createScript(name: "ECHO", source: "return 1") { id } }'
    before = state()
    answer = admin_graphql(create, acme_token)

    assert (answer.code, extensions_of(answer)["field"]) == ("BAD_USER_INPUT", "name")
    assert state() == before


def test_a_library_is_created_and_stays_one(acme_token: str) -> None:
    create = """mutation { createScript(name: "lib", source: "return {}", isLibrary: true,
        timeoutSeconds: 2, enabled: false, maxConcurrentRuns: 3) {
        isLibrary revision enabled timeoutSeconds maxConcurrentRuns } }"""

    assert admin_graphql(create, acme_token).data["createScript"] == {
        "isLibrary": True,
        "revision": 1,
        "enabled": False,
        "timeoutSeconds": 2.0,
        "maxConcurrentRuns": 3,
    }
    assert Release.objects.count() == 1


def test_an_author_deletes_their_draft(script: Script, acme: Organisation) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS, Scope.WRITE_DRAFTS)
    saved = admin_graphql(SAVE_DRAFT, token, script=str(script.pk), source="return 2")
    answer = admin_graphql(DELETE_DRAFT, token, id=saved.data["saveDraft"]["id"])

    assert answer.data == {"deleteDraft": True}
    assert script.versions.count() == 1


def test_another_authors_draft_is_deleted_by_who_may_publish(
    acme: Organisation, script: Script, draft: ScriptVersion, acme_token: str
) -> None:
    narrow = token_with(acme, Scope.READ_SCRIPTS, Scope.WRITE_DRAFTS)
    before = state()
    refused = admin_graphql(DELETE_DRAFT, narrow, id=str(draft.pk))

    assert (refused.code, extensions_of(refused)["scope"]) == ("FORBIDDEN", "Publish")
    assert state() == before
    assert AuthEvent.objects.filter(kind="scope.refused", reason="Publish").count() == 1
    assert admin_graphql(DELETE_DRAFT, acme_token, id=str(draft.pk)).data == {"deleteDraft": True}


@pytest.mark.parametrize("state_of_version", ["live", "past"])
def test_only_drafts_are_deleted(script: Script, acme_token: str, state_of_version: str) -> None:
    update_script(script, author=NOBODY, source="return 2")
    live, past = script.versions.all()
    version = {"live": live, "past": past}[state_of_version]
    before = state()

    assert admin_graphql(DELETE_DRAFT, acme_token, id=str(version.pk)).code == "NOT_FOUND"
    assert state() == before


# --- Publishing and undoing ----------------------------------------------------------------------


def test_a_release_is_undone(script: Script, acme_token: str) -> None:
    update_script(script, author=NOBODY, source="return 2")
    undone = Release.objects.get(number=2)

    answer = admin_graphql(UNDO, acme_token, id=str(undone.pk))

    assert answer.data["undoRelease"] == {
        "number": 3,
        "undoes": {"number": 2},
        "changes": [{"action": "Update"}],
    }
    assert Script.objects.get().source == script.source


def test_what_has_changed_since_is_a_conflict_unless_forced(
    script: Script, acme_token: str
) -> None:
    update_script(script, author=NOBODY, source="return 2")
    undone, before = Release.objects.get(number=2), None
    update_script(script, author=NOBODY, name="new")
    before = state()
    refused = admin_graphql(UNDO, acme_token, id=str(undone.pk))
    after = state()
    forced = admin_graphql(UNDO, acme_token, id=str(undone.pk), force=True)

    assert (refused.status, refused.code) == (200, "CONFLICT")
    assert "“echo” (script)" in refused.errors[0]["message"]
    assert after == before
    assert forced.data["undoRelease"]["number"] == 4
    assert Script.objects.get().name == "echo"


def test_a_deletion_whose_name_is_taken_is_a_conflict(
    acme: Organisation, script: Script, acme_token: str
) -> None:
    delete_script(script)
    deletion = Release.objects.get(number=2)
    make_script(acme, name="Echo")
    before = state()
    answer = admin_graphql(UNDO, acme_token, id=str(deletion.pk), force=True)

    assert answer.code == "CONFLICT"
    assert "There is one named “echo” already" in answer.errors[0]["message"]
    assert state() == before


@pytest.mark.parametrize("versions", [[], ["x"], [str(uuid.uuid4())]])
def test_versions_that_are_none_are_refused(
    script: Script, acme_token: str, versions: list[str]
) -> None:
    before = state()
    answer = admin_graphql(PUBLISH, acme_token, versions=versions)

    assert answer.code in {"BAD_USER_INPUT", "NOT_FOUND"}
    assert state() == before


def test_too_many_versions_are_refused(script: Script, acme_token: str) -> None:
    answer = admin_graphql(PUBLISH, acme_token, versions=[str(script.pk)] * 201)

    assert (answer.code, extensions_of(answer)["field"]) == ("BAD_USER_INPUT", "versions")


def test_what_is_live_already_is_not_published(script: Script, acme_token: str) -> None:
    before = state()
    answer = admin_graphql(PUBLISH, acme_token, versions=[str(script.versions.get().pk)])

    assert (answer.code, extensions_of(answer)["field"]) == ("BAD_USER_INPUT", "versions")
    assert state() == before


def test_draft_that_is_behind_is_a_conflict(
    script: Script, draft: ScriptVersion, acme_token: str
) -> None:
    update_script(script, author=NOBODY, source="return 9")
    before = state()
    answer = admin_graphql(PUBLISH, acme_token, versions=[str(draft.pk)])

    assert answer.code == "CONFLICT"
    assert {"by", "at"} <= extensions_of(answer).keys()
    assert state() == before


# --- Scopes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "scope"),
    [
        ('mutation { saveDraft(script: "%s", source: "") { id } }', "WriteDrafts"),
        ('mutation { deleteDraft(id: "%s") }', "WriteDrafts"),
        ('mutation { publish(versions: ["%s"]) { id } }', "Publish"),
        ('mutation { undoRelease(id: "%s") { id } }', "ReadScripts"),
        ('{ release(id: "%s") { id } }', "ReadScripts"),
    ],
)
def test_a_field_without_its_scope_is_refused_before_anything_runs(
    acme: Organisation, script: Script, document: str, scope: str
) -> None:
    held = [Scope.RUN_SCRIPTS, Scope.WRITE_HOOKS]
    others = [Scope.READ_SCRIPTS] if scope != "ReadScripts" else []
    token = token_with(acme, *held, *others)
    before = state()
    answer = admin_graphql(document % script.pk, token)

    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert extensions_of(answer)["scope"] == scope
    assert state() == before


def test_a_release_of_scripts_is_undone_only_with_publish(
    acme: Organisation, script: Script
) -> None:
    update_script(script, author=NOBODY, source="return 2")
    release, before = Release.objects.get(number=2), state()
    narrow = token_with(acme, Scope.READ_SCRIPTS, Scope.WRITE_HOOKS, Scope.WRITE_DRAFTS)
    refused = admin_graphql(UNDO, narrow, id=str(release.pk))

    assert (refused.code, extensions_of(refused)["scope"]) == ("FORBIDDEN", "Publish")
    assert state() == before
    enough = token_with(acme, Scope.READ_SCRIPTS, Scope.PUBLISH, name="enough")
    assert admin_graphql(UNDO, enough, id=str(release.pk)).errors == []


# --- Other organisations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ('mutation { saveDraft(script: "%s", source: "return 9") { id } }', "script"),
        ('mutation { deleteDraft(id: "%s") }', "draft"),
        ('mutation { publish(versions: ["%s"]) { id } }', "draft"),
        ('mutation { restoreScriptVersion(version: "%s") { id } }', "draft"),
        ('mutation { undoRelease(id: "%s", force: true) { id } }', "release"),
        ('{ releases(script: "%s") { totalCount } }', "script"),
    ],
)
def test_another_organisations_objects_are_not_found(
    foreign: Script, acme_token: str, charlie: User, document: str, kind: str
) -> None:
    ids = {
        "script": foreign.pk,
        "draft": save_draft(foreign, "return 2", author=Author(user=charlie)).pk,
        "release": Release.objects.get().pk,
    }
    before = state()
    answer = admin_graphql(document % ids[kind], acme_token)

    assert (answer.status, answer.code) == (200, "NOT_FOUND")
    assert state() == before


def test_another_organisations_release_is_not_shown(foreign: Script, acme_token: str) -> None:
    release = Release.objects.get()

    assert admin_graphql(f'{{ release(id: "{release.pk}") {{ id }} }}', acme_token).code == (
        "NOT_FOUND"
    )
    assert admin_graphql(RELEASES, acme_token).data["releases"]["totalCount"] == 0


# --- Lists ---------------------------------------------------------------------------------------


def test_releases_are_listed_newest_first_in_pages(script: Script, acme_token: str) -> None:
    update_script(script, author=NOBODY, source="return 2")
    update_script(script, author=NOBODY, source="return 3")
    page = admin_graphql(RELEASES, acme_token, first=2)
    cursor = page.data["releases"]["pageInfo"]["endCursor"]
    rest = admin_graphql(RELEASES, acme_token, first=2, after=cursor)

    assert (numbers(page), numbers(rest)) == ([3, 2], [1])
    assert page.data["releases"]["totalCount"] == 3
    assert not rest.data["releases"]["pageInfo"]["hasNextPage"]


def test_releases_are_filtered_by_script_even_a_deleted_one(
    acme: Organisation, script: Script, acme_token: str
) -> None:
    make_script(acme, name="other")
    delete_script(script)

    assert numbers(admin_graphql(RELEASES, acme_token, script=str(script.pk))) == [3, 1]


def test_releases_are_filtered_by_time(script: Script, acme_token: str) -> None:
    update_script(script, author=NOBODY, source="return 2")
    moment = Release.objects.get(number=2).at.isoformat()

    assert numbers(admin_graphql(RELEASES, acme_token, since=moment)) == [2]
    assert numbers(admin_graphql(RELEASES, acme_token, until=moment)) == [1]


def test_a_library_names_the_scripts_whose_live_version_requires_it(
    acme: Organisation, script: Script, bob: User, acme_token: str
) -> None:
    library = make_script(acme, "return {}", name="lib", is_library=True)
    version = library.versions.get()
    script.versions.get().requirements.create(name="lib", library_version=version)
    past = make_script(acme, name="past")
    past.versions.get().requirements.create(name="lib", library_version=version)
    update_script(past, author=NOBODY, source="return 2")
    query = """query($id: ID!, $script: ID!) { library: script(id: $id) { requiredBy { name } }
        script(id: $script) { live { libraries { id state author } } } }"""
    update_script(library, author=NOBODY, source="return {1}")
    answer = admin_graphql(query, acme_token, id=str(library.pk), script=str(script.pk))

    assert answer.data == {
        "library": {"requiredBy": [{"name": "echo"}]},
        "script": {
            "live": {"libraries": [{"id": str(version.pk), "state": "Past", "author": "Unknown"}]}
        },
    }


def test_differences_of_many_changes_count_against_the_limit(
    script: Script, acme_token: str
) -> None:
    one = "{ releases(first: 1) { nodes { changes { diff } } } }"
    many = "{ releases(first: 2) { nodes { changes { diff } } } }"

    assert admin_graphql(one, acme_token).errors == []
    assert admin_graphql(many, acme_token).code == "LIMIT_EXCEEDED"
