"""Undoing a release: everything as it was, or a refusal that changes nothing."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.audit import person
from accounts.models import AuthEvent, Organisation, User
from accounts.scopes import EVERYTHING, MissingScopeError, Scope
from core.errors import ConflictError
from core.http.origin import NOWHERE, Origin
from hooks.models import Hook
from scripts_engine.flows.drafts import publish, save_draft
from scripts_engine.flows.scripts import create_script, delete_script, update_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.spec import Author
from tests.factories import NOBODY, make_hook, make_script

pytestmark = pytest.mark.django_db


def undo(release: Release, **options: Any) -> Release:
    return undo_release(release, **({"held": EVERYTHING, "origin": NOWHERE} | options))


def last() -> Release:
    release = Release.objects.first()
    assert release is not None
    return release


def state() -> tuple[Any, ...]:
    """What a refusal must not change."""
    scripts = Script.objects.order_by("pk").values_list(
        "name", "is_enabled", "current_version", "deleted_at", "revision"
    )
    return (
        list(scripts),
        ScriptVersion.objects.count(),
        Release.objects.count(),
        AuthEvent.objects.count(),
    )


def test_a_changed_source_is_put_back_as_the_version_it_was(script: Script, bob: User) -> None:
    first = script.versions.get()
    update_script(script, author=NOBODY, source="return 2")
    undone = last()
    release = undo(undone, origin=Origin(actor=person(bob)))

    now = Script.objects.get()
    assert (now.current_version, now.revision, now.revised_by) == (first, 3, "bob@example.com")
    assert (release.undoes, release.number, release.actor_label) == (undone, 3, "bob@example.com")
    assert script.versions.count() == 2
    event = AuthEvent.objects.first()
    assert event is not None
    assert (event.kind, event.reason) == ("script.restored", "version 1")


def test_settings_and_names_are_put_back(script: Script) -> None:
    update_script(
        script,
        author=NOBODY,
        name="new",
        is_enabled=False,
        timeout_seconds=1.0,
        max_concurrent_runs=3,
    )
    undo(last())

    now = Script.objects.get()
    assert (now.name, now.is_enabled) == ("echo", True)
    assert (now.timeout_seconds, now.max_concurrent_runs) == (10.0, None)


def test_a_creation_is_undone_by_deleting(script: Script) -> None:
    undo(last())

    assert Script.objects.get().deleted_at is not None
    assert AuthEvent.objects.filter(kind="script.deleted").count() == 1


def test_a_deleted_script_comes_back_with_its_id_and_its_hooks(script: Script) -> None:
    hook = make_hook(script).hook
    delete_script(script)
    gone = Hook.objects.existing().count()
    undo(last())

    now = Script.objects.get()
    assert (now.pk, now.name, now.deleted_at) == (script.pk, "echo", None)
    assert (gone, list(Hook.objects.existing())) == (0, [hook])
    assert AuthEvent.objects.filter(kind="script.undeleted").count() == 1


def test_an_undoing_is_undone(script: Script) -> None:
    update_script(script, author=NOBODY, source="return 2")
    again = undo(undo(last()))

    assert Script.objects.get().source == "return 2"
    assert again.undoes is not None
    assert again.undoes.undoes is not None


def test_all_scripts_of_a_release_are_put_back(
    acme: Organisation, script: Script, bob: User
) -> None:
    other = make_script(acme, name="other")
    author = Author(user=bob)
    drafts = [save_draft(each, "return 2", author=author) for each in (script, other)]
    undo(publish(acme, drafts))

    sources = Script.objects.values_list("current_version__source", flat=True)
    assert list(sources) == ['return params.get("body")'] * 2
    assert not script.versions.drafts().exists()


def test_names_that_were_passed_on_go_back(acme: Organisation) -> None:
    one, two = make_script(acme, name="one"), make_script(acme, name="two")
    update_script(one, author=NOBODY, name="three")
    first = last()
    update_script(two, author=NOBODY, name="one")
    before = state()

    with pytest.raises(ConflictError, match="There is one named “one” already"):
        undo(first)

    assert state() == before
    undo(last())
    undo(first)
    assert set(Script.objects.values_list("name", flat=True)) == {"one", "two"}


def test_what_has_changed_since_is_named(acme: Organisation, script: Script, bob: User) -> None:
    other = make_script(acme, name="other")
    author = Author(user=bob)
    drafts = [save_draft(each, "return 2", author=author) for each in (script, other)]
    release = publish(acme, drafts)
    update_script(script, author=NOBODY, name="renamed")
    before = state()

    with pytest.raises(ConflictError) as conflict:
        undo(release)

    assert str(conflict.value) == "Changed since release 3: “echo” (script)."
    assert state() == before


def test_force_puts_back_what_has_changed_since(script: Script) -> None:
    update_script(script, author=NOBODY, source="return 2")
    release = last()
    update_script(script, author=NOBODY, source="return 3")
    forced = undo(release, force=True)

    assert Script.objects.get().source == script.source
    change = forced.changes.get()
    assert change.before["version"] == str(script.versions.get(source="return 3").pk)


def test_a_deletion_whose_name_is_taken_is_a_conflict_even_by_force(
    acme: Organisation, script: Script
) -> None:
    delete_script(script)
    deletion = last()
    make_script(acme, name="ECHO")
    before = state()

    with pytest.raises(ConflictError, match="There is one named “echo” already"):
        undo(deletion, force=True)

    assert state() == before


def test_a_deletion_whose_name_is_taken_is_undone_under_another(
    acme: Organisation, script: Script
) -> None:
    hook = make_hook(script, "orders").hook
    delete_script(script)
    deletion = last()
    make_script(acme, name="ECHO")

    release = undo(deletion, name=" Echo of old ")

    script.refresh_from_db()
    assert (script.name, script.deleted_at) == ("Echo of old", None)
    assert Hook.objects.existing().get().pk == hook.pk
    assert {change.name for change in release.changes.all()} == {"Echo of old", "orders"}


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "Echo"])
def test_a_name_that_does_not_do_puts_nothing_back(
    acme: Organisation, script: Script, name: str
) -> None:
    delete_script(script)
    deletion = last()
    make_script(acme, name="ECHO")
    before = state()

    with pytest.raises((ConflictError, ValidationError)) as refused:
        undo(deletion, name=name)

    assert state() == before
    error = refused.value
    fields = error.extensions.values() if isinstance(error, ConflictError) else error.message_dict
    assert list(fields) == ["name"]


def test_a_name_is_for_what_cannot_have_its_own(script: Script) -> None:
    delete_script(script)
    before = state()

    with pytest.raises(ValidationError) as refused:
        undo(last(), name="other")

    assert list(refused.value.message_dict) == ["name"]
    assert state() == before


def test_undoing_a_rename_whose_old_name_is_taken_asks_for_another(
    acme: Organisation, script: Script
) -> None:
    update_script(script, author=NOBODY, name="new")
    renaming = last()
    make_script(acme, name="echo")

    with pytest.raises(ConflictError, match="There is one named “echo” already"):
        undo(renaming)
    undo(renaming, name="third")

    script.refresh_from_db()
    assert script.name == "third"


def test_names_of_one_release_that_change_places_are_put_back(acme: Organisation) -> None:
    one, other = make_script(acme, name="one"), make_script(acme, name="other")
    for script, name in ((one, "third"), (other, "one"), (one, "other")):
        update_script(script, author=NOBODY, name=name)

    undo(last())

    assert set(Script.objects.values_list("name", flat=True)) == {"third", "one"}


def test_what_is_undone_already_is_a_conflict(script: Script) -> None:
    update_script(script, author=NOBODY, is_enabled=False)
    release = last()
    update_script(script, author=NOBODY, is_enabled=True)
    before = state()

    with pytest.raises(ConflictError, match="Release 2 is undone already"):
        undo(release)

    assert state() == before


def test_each_object_needs_its_own_scope(script: Script) -> None:
    update_script(script, author=NOBODY, source="return 2")
    before = state()

    with pytest.raises(MissingScopeError) as refused:
        undo(last(), held=frozenset({Scope.READ_SCRIPTS, Scope.WRITE_DRAFTS}), force=True)

    assert refused.value.extensions == {"scope": "Publish"}
    assert state() == before
    assert undo(last(), held=frozenset({Scope.PUBLISH})).number == 3


def test_a_script_beyond_the_limit_does_not_come_back(
    acme: Organisation, script: Script, settings: Any
) -> None:
    settings.SCRIPTS_PER_ORGANISATION = 1
    delete_script(script)
    deletion = last()
    create_script(acme, name="other", source="return 1", author=NOBODY)
    before = state()

    with pytest.raises(Exception, match="at most 1 scripts"):
        undo(deletion)

    assert state() == before


def test_a_full_quota_keeps_nothing_running(script: Script, settings: Any) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 1
    disabled = update_script(script, author=NOBODY, is_enabled=False)
    delete_script(script)

    assert not disabled.is_enabled
    assert Script.objects.get().deleted_at is not None
    assert Release.objects.count() == 3


def test_undoing_an_older_release_of_a_deleted_script_leaves_its_hooks_deleted(
    script: Script,
) -> None:
    make_hook(script)
    update_script(script, author=NOBODY, name="new")
    renamed = last()
    delete_script(script)
    undo(renamed, force=True, held=frozenset({Scope.PUBLISH}))

    assert Script.objects.get().deleted_at is None
    assert not Hook.objects.existing().exists()
