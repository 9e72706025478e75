"""Scripts: names that are unique, revisions, and one release for each change."""

import unicodedata
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.audit import person, program
from accounts.flows.api_keys import IssuedApiKey
from accounts.models import AuthEvent, Organisation, User
from core.errors import ConflictError, NotFoundError
from core.http.origin import Origin
from scripts_engine.flows.scripts import (
    create_script,
    delete_script,
    restore_script_version,
    update_script,
)
from scripts_engine.models import Release, ReleaseChange, Script, ScriptVersion
from tests.concurrency import at_once
from tests.factories import NOBODY, make_script

pytestmark = pytest.mark.django_db


def by(user: User) -> Origin:
    return Origin(actor=person(user))


def create(organisation: Organisation, name: str, **fields: Any) -> Script:
    return create_script(organisation, name=name, source="return 1", author=NOBODY, **fields)


def refused_fields(error: pytest.ExceptionInfo[ValidationError]) -> list[str]:
    return list(error.value.message_dict)


def rows() -> tuple[int, int, int, int]:
    """What a refusal must not change."""
    return (
        Script.objects.count(),
        ScriptVersion.objects.count(),
        Release.objects.count(),
        AuthEvent.objects.count(),
    )


# --- Names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taken", "name"),
    [
        ("sum", "sum"),
        ("sum", " SUM "),
        ("Straße", "STRASSE"),
        ("café", unicodedata.normalize("NFD", "CAFÉ")),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
    ],
)
def test_a_name_that_counts_as_the_same_is_refused(
    acme: Organisation, taken: str, name: str
) -> None:
    create(acme, taken)
    before = rows()

    with pytest.raises(ValidationError) as refused:
        create(acme, name)

    assert refused_fields(refused) == ["name"]
    assert rows() == before


@pytest.mark.parametrize(("taken", "name"), [("I", "ı"), ("i", "ı"), ("sum", "sum 2")])
def test_a_name_that_differs_is_another_name(acme: Organisation, taken: str, name: str) -> None:
    create(acme, taken)

    assert create(acme, name).name == name


@pytest.mark.parametrize(
    "name", ["", "   ", "x" * 101, "a\0b", "a\nb", "a\x85b", "a\u2028b", "\ud800"]
)
def test_a_name_that_is_no_name_is_refused(acme: Organisation, name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        create(acme, name)

    assert refused_fields(refused) == ["name"]
    assert rows() == (0, 0, 0, 0)


def test_a_hundred_characters_are_a_name(acme: Organisation) -> None:
    # Each of them folds to three.
    assert create(acme, "ΐ" * 100).name_key == "ΐ" * 100


def test_a_script_takes_no_name_of_another(acme: Organisation) -> None:
    create(acme, "sum")
    other = create(acme, "other")
    before = rows()

    with pytest.raises(ValidationError) as refused:
        update_script(other, author=NOBODY, name="Sum", is_enabled=False)

    assert refused_fields(refused) == ["name"]
    assert rows() == before
    assert Script.objects.get(pk=other.pk).is_enabled


def test_a_script_may_change_the_case_of_its_name(acme: Organisation) -> None:
    script = create(acme, "sum")

    assert update_script(script, author=NOBODY, name="SUM").name == "SUM"


def test_a_deleted_script_frees_its_name(acme: Organisation) -> None:
    delete_script(create(acme, "sum"))

    assert create(acme, "sum").deleted_at is None


def test_another_organisation_has_names_of_its_own(
    acme: Organisation, globex: Organisation
) -> None:
    create(acme, "sum")

    assert create(globex, "sum").name == "sum"


@pytest.mark.django_db(transaction=True)
def test_of_many_creations_of_one_name_at_once_one_succeeds(acme: Organisation) -> None:
    def try_to_create(number: int) -> list[str]:
        try:
            create(acme, ("sum", "SUM")[number % 2])
        except ValidationError as error:
            return list(error.message_dict)
        return []

    outcomes = at_once(6, try_to_create)

    assert sorted(outcomes) == [[], *[["name"]] * 5]
    assert (Script.objects.count(), ScriptVersion.objects.count()) == (1, 1)
    assert Release.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_a_renaming_and_a_creation_at_once_one_gets_the_name(acme: Organisation) -> None:
    scripts = [create(acme, str(number)) for number in range(4)]

    def try_to_take(number: int) -> bool:
        try:
            update_script(scripts[number], author=NOBODY, name="sum")
        except ValidationError:
            return False
        return True

    assert at_once(4, try_to_take).count(True) == 1
    assert Script.objects.filter(name="sum").count() == 1


# --- Revisions -----------------------------------------------------------------------------------


def test_each_change_counts_and_says_by_whom(acme: Organisation, bob: User) -> None:
    script = create(acme, "sum", origin=by(bob))
    renamed = update_script(script, author=NOBODY, name="total", origin=by(bob))

    assert (script.revision, script.revised_by) == (1, "bob@example.com")
    assert (renamed.revision, renamed.revised_by) == (2, "bob@example.com")
    assert renamed.revised_at > script.revised_at


def test_a_change_to_what_is_there_already_counts_as_none(acme: Organisation) -> None:
    script = create(acme, "sum")
    releases = Release.objects.count()

    unchanged = update_script(script, author=NOBODY, name="sum", source="return 1")

    assert (unchanged.revision, Release.objects.count()) == (1, releases)


def test_a_change_of_an_older_revision_is_a_conflict_that_says_who_and_when(
    acme: Organisation, bob: User
) -> None:
    script = create(acme, "sum")
    changed = update_script(script, author=NOBODY, source="return 2", origin=by(bob))
    before = rows()

    with pytest.raises(ConflictError) as conflict:
        update_script(script, author=NOBODY, source="return 3", expected_revision=1)

    assert "“sum” was changed by bob@example.com at" in str(conflict.value)
    assert conflict.value.extensions == {
        "by": "bob@example.com",
        "at": changed.revised_at.isoformat(),
    }
    assert rows() == before
    assert (
        update_script(script, author=NOBODY, source="return 3", expected_revision=2).revision == 3
    )


@pytest.mark.django_db(transaction=True)
def test_of_many_changes_of_one_revision_at_once_one_succeeds(acme: Organisation) -> None:
    script = create(acme, "sum")

    def save(number: int) -> bool:
        source = f"return 1{number}"
        try:
            update_script(script, author=NOBODY, source=source, expected_revision=1)
        except ConflictError:
            return False
        return True

    assert at_once(6, save).count(True) == 1
    assert (script.versions.count(), Script.objects.get().revision) == (2, 2)


def test_a_deleted_script_is_not_changed(acme: Organisation) -> None:
    script = create(acme, "sum")
    delete_script(script)
    before = rows()

    with pytest.raises(NotFoundError):
        update_script(script, author=NOBODY, name="other")

    assert rows() == before


# --- Releases ------------------------------------------------------------------------------------


def changes_of(release: Release | None) -> list[tuple[str, str, str]]:
    assert release is not None
    return list(release.changes.order_by("place").values_list("kind", "name", "action"))


def test_a_creation_with_settings_is_one_release(acme: Organisation, bob: User) -> None:
    script = create(
        acme, "sum", is_library=True, timeout_seconds=2.0, is_enabled=False, origin=by(bob)
    )

    release = Release.objects.get()
    change = release.changes.get()
    assert (release.number, release.actor_label) == (1, "bob@example.com")
    assert changes_of(release) == [("Script", "sum", "Create")]
    assert (change.before, change.after) == (
        None,
        {
            "name": "sum",
            "library": True,
            "enabled": False,
            "timeoutSeconds": 2.0,
            "maxConcurrentRuns": None,
            "version": str(script.current_version_id),
        },
    )
    assert change.version_after == script.current_version_id


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({"name": "total"}, "Rename"),
        ({"name": "total", "source": "return 2"}, "Update"),
        ({"is_enabled": False}, "Update"),
        ({"max_concurrent_runs": 5}, "Update"),
    ],
)
def test_a_change_is_one_release(acme: Organisation, changes: dict[str, Any], action: str) -> None:
    script = create(acme, "sum")

    changed = update_script(script, author=NOBODY, **changes)

    assert changes_of(Release.objects.first()) == [("Script", changed.name, action)]


def test_restoring_and_deleting_are_releases(acme: Organisation) -> None:
    script = make_script(acme)
    update_script(script, author=NOBODY, source="return 2")
    restored = restore_script_version(script.versions.get(number=1), author=NOBODY)
    delete_script(restored)
    delete_script(restored)

    newest_first = list(ReleaseChange.objects.order_by("-release__number"))
    assert [change.action for change in newest_first] == ["Delete", "Update", "Update", "Create"]
    assert newest_first[0].after is None
    assert newest_first[1].version_after == script.versions.get(number=3).pk


def test_a_release_names_only_what_its_organisation_may_know(
    acme: Organisation, globex: Organisation, charlie: User, acme_key: IssuedApiKey
) -> None:
    by_outsider = create(acme, "sum", origin=by(charlie))
    by_key = create(acme, "total", origin=Origin(actor=program(acme_key.api_key)))

    assert by_outsider.revised_by == "An administrator of another organisation"
    assert by_key.revised_by == "warehouse"
    assert set(Release.objects.values_list("actor_label", flat=True)) == {
        "An administrator of another organisation",
        "warehouse",
    }
