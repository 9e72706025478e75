"""The Releases pages: what went live, when and by whom; undone in a click."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation, Role, User
from accounts.scopes import EVERYTHING, ROLE_SCOPES, Scope
from core.http.origin import NOWHERE
from hooks.flows.hooks import update_hook
from hooks.models import Hook
from scripts_engine.flows.scripts import delete_script, delete_scripts, update_script
from scripts_engine.models import Release, Run, Script
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.spec import NOBODY
from tests import factories
from tests.admin.pages import CONFIRMED, everything, list_of, page_of, run_of, text_of
from tests.admin.roles import client_of
from tests.written import nothing_written


@pytest.fixture
def published(acme_script: Script) -> Release:
    """The second release, with which the script returns 2."""
    update_script(acme_script, author=NOBODY, source="return 2", note="Twice as much")
    return Release.objects.get(number=2)


def test_list_names_what_changed(as_bob: Client, published: Release) -> None:
    text = text_of(as_bob.get(list_of(Release)))

    assert "“echo” published" in text
    assert "“echo” created" in text
    assert "Twice as much" in text


def test_list_without_releases_says_what_they_are(as_bob: Client, bob: User) -> None:
    assert "tells who put what live" in text_of(as_bob.get(list_of(Release)))


def test_list_is_filtered_by_script(as_bob: Client, acme: Organisation, published: Release) -> None:
    other = factories.make_script(acme, "return 1", "other")

    text = text_of(as_bob.get(list_of(Release), {"script": str(other.pk)}))

    assert "“other” created" in text
    assert "“echo” published" not in text


def test_list_is_filtered_by_who_released(as_bob: Client, published: Release) -> None:
    nobody = text_of(as_bob.get(list_of(Release), {"by": "nobody@example.com"}))
    found = text_of(as_bob.get(list_of(Release), {"by": published.actor_label}))

    assert "“echo” published" not in nobody
    assert "“echo” published" in found


def test_malformed_script_in_the_filter_finds_nothing(as_bob: Client, published: Release) -> None:
    answer = as_bob.get(list_of(Release), {"script": "x"})

    assert answer.status_code == 200
    assert "“echo” published" not in text_of(answer)


def test_page_shows_the_difference_of_the_source(as_bob: Client, published: Release) -> None:
    text = text_of(as_bob.get(page_of(published)))

    assert '<span class="mh-added">+return 2</span>' in text
    assert "Twice as much" in text


def test_asking_to_undo_names_what_will_change_and_changes_nothing(
    as_bob: Client, published: Release
) -> None:
    before = everything()

    text = text_of(as_bob.get(page_of(published, "undo")))

    assert '<span class="mh-removed">-return 2</span>' in text
    assert "Changed since" not in text
    assert everything() == before


def test_undoing_a_creation_says_what_is_deleted_line_by_line(
    as_bob: Client, acme_script: Script
) -> None:
    hook = factories.make_hook(acme_script).hook
    created = Release.objects.get(number=1)

    text = text_of(as_bob.get(page_of(created, "undo")))

    assert f"Script “{acme_script.name}” deleted" in text
    assert f"Hook “{hook.name}” deleted" in text
    assert f"<li>Name: {hook.name}</li><li>Script: {acme_script.name}</li>" in text


def test_undo_puts_back_as_a_new_release(as_bob: Client, bob: User, published: Release) -> None:
    answer = as_bob.post(page_of(published, "undo"), CONFIRMED)

    undone = Release.objects.get(number=3)
    assert answer["Location"] == page_of(undone)
    assert (undone.undoes, undone.actor_label) == (published, bob.email)
    assert Script.objects.get().source == 'return params.get("body")'


def test_undo_of_what_changed_since_needs_its_own_yes(
    as_bob: Client, acme_script: Script, published: Release
) -> None:
    update_script(acme_script, author=NOBODY, source="return 3")
    before = everything()

    answer = as_bob.post(page_of(published, "undo"), CONFIRMED)

    assert answer.status_code == 200
    assert "Changed since release 2" in text_of(answer)
    assert "Tick this to lose what has changed since." in text_of(answer)
    assert everything() == before


def test_forced_undo_loses_what_changed_since(
    as_bob: Client, acme_script: Script, published: Release
) -> None:
    update_script(acme_script, author=NOBODY, source="return 3")

    as_bob.post(page_of(published, "undo"), {**CONFIRMED, "force": "on"})

    assert Script.objects.get().source == 'return params.get("body")'


def test_undo_of_a_deletion_asks_for_another_name_where_its_own_is_taken(
    as_bob: Client, acme: Organisation, acme_script: Script
) -> None:
    name = acme_script.name
    delete_script(acme_script)
    deletion = Release.objects.get(number=2)
    free = text_of(as_bob.get(page_of(deletion, "undo")))
    factories.make_script(acme, name=name.upper())
    before = everything()

    asked = text_of(as_bob.get(page_of(deletion, "undo")))
    refused = as_bob.post(page_of(deletion, "undo"), CONFIRMED)
    taken = as_bob.post(page_of(deletion, "undo"), {**CONFIRMED, "name": name.title()})

    assert "needs another name" in asked
    assert "needs another name" not in free
    assert refused.status_code == taken.status_code == 200
    assert "There is one named" in text_of(taken)
    assert everything() == before
    as_bob.post(page_of(deletion, "undo"), {**CONFIRMED, "name": "back again"})
    acme_script.refresh_from_db()
    assert (acme_script.name, acme_script.deleted_at) == ("back again", None)


def test_second_undo_says_that_it_is_done(as_bob: Client, published: Release) -> None:
    as_bob.post(page_of(published, "undo"), CONFIRMED)

    answer = as_bob.post(page_of(published, "undo"), CONFIRMED, follow=True)

    assert "is undone already" in text_of(answer)
    assert Release.objects.count() == 3


def without(scope: Scope, acme: Organisation, patch: pytest.MonkeyPatch) -> Client:
    """An author of Acme whose role lacks the scope."""
    patch.setitem(ROLE_SCOPES, Role.AUTHOR, Role.AUTHOR.scopes - {scope})
    return client_of(acme, Role.AUTHOR)


@pytest.mark.parametrize(
    ("lacking", "undone"),
    [(Scope.PUBLISH, "hook"), (Scope.WRITE_HOOKS, "script")],
    ids=["hooks-need-no-publish", "scripts-need-no-write-hooks"],
)
def test_undo_needs_only_the_scopes_of_what_it_changes(
    acme: Organisation,
    acme_script: Script,
    monkeypatch: pytest.MonkeyPatch,
    lacking: Scope,
    undone: str,
) -> None:
    hook = factories.make_hook(acme_script).hook
    update_script(acme_script, author=NOBODY, source="return 2")
    releases = {"hook": Release.objects.get(number=2), "script": Release.objects.get(number=3)}
    client = without(lacking, acme, monkeypatch)
    release, other = releases.pop(undone), next(iter(releases.values()))
    undo_button = page_of(release, "undo")

    assert undo_button in text_of(client.get(page_of(release)))
    assert client.get(undo_button).status_code == 200
    assert page_of(other, "undo") not in text_of(client.get(page_of(other)))
    with nothing_written():
        refused = [
            client.get(page_of(other, "undo")),
            client.post(page_of(other, "undo"), {**CONFIRMED, "force": "on"}),
        ]
    assert [answer.status_code for answer in refused] == [403, 403]
    assert all("role Administrator in Acme" in text_of(answer) for answer in refused)

    assert client.post(undo_button, {**CONFIRMED, "force": "on"}).status_code == 302
    hook.refresh_from_db()
    assert (hook.deleted_at is not None, Script.objects.get().source) == {
        "hook": (True, "return 2"),
        "script": (False, 'return params.get("body")'),
    }[undone]


def test_undo_of_a_script_needs_the_scope_of_the_hooks_that_end_with_it(
    acme: Organisation, acme_script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = Release.objects.get(number=1)
    client = without(Scope.WRITE_HOOKS, acme, monkeypatch)
    assert client.get(page_of(created, "undo")).status_code == 200

    factories.make_hook(acme_script)

    with nothing_written():
        answers = [client.get(page_of(created, "undo")), client.post(page_of(created, "undo"))]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert all("role Administrator in Acme" in text_of(answer) for answer in answers)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_undo_is_neither_offered_nor_open_to_roles_that_only_read(
    acme: Organisation, published: Release, role: Role
) -> None:
    client = client_of(acme, role)

    assert page_of(published, "undo") not in text_of(client.get(page_of(published)))
    with nothing_written():
        answers = [
            client.get(page_of(published, "undo")),
            client.post(page_of(published, "undo"), CONFIRMED),
        ]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert all("role Author or Administrator in Acme" in text_of(answer) for answer in answers)


def test_undo_page_names_what_changed_since_and_only_that(
    as_bob: Client, acme_script: Script, published: Release
) -> None:
    hook = factories.make_hook(acme_script, "till").hook
    delete_scripts(acme_script.organisation, [acme_script])
    deletion = Release.objects.latest("number")
    back = undo_release(deletion, held=EVERYTHING, origin=NOWHERE)
    update_hook(hook, name="desk")

    text = text_of(as_bob.get(page_of(back, "undo")))

    assert text.count("that change is lost") == 1
    assert "<li>Hook “till”</li>" in text


def test_undo_of_globex_is_out_of_reach(as_bob: Client, globex: Organisation) -> None:
    factories.make_script(globex, "return 1", "theirs")
    before = everything()

    answer = as_bob.post(page_of(Release.objects.get(), "undo"), CONFIRMED)

    assert answer.status_code == 404
    assert everything() == before


def test_run_names_the_release_that_it_used(as_bob: Client, acme_hook: Hook) -> None:
    update_script(acme_hook.script, author=NOBODY, source="return 2")
    acme_hook.refresh_from_db()
    release = Release.objects.first()

    text = text_of(as_bob.get(page_of(run_of(acme_hook))))

    assert page_of(release) in text


def _failed(hook: Hook) -> Any:
    update_script(hook.script, author=NOBODY, source="error('no')")
    hook.refresh_from_db()
    return run_of(hook)


def test_home_names_the_release_before_the_first_failure(as_bob: Client, acme_hook: Hook) -> None:
    run = _failed(acme_hook)
    release = Release.objects.first()
    assert release is not None
    Release.objects.filter(pk=release.pk).update(
        at=run.started_at - timedelta(minutes=3, seconds=30)
    )

    text = text_of(as_bob.get("/admin/"))

    assert f"Release {release.number}</a>, 3\N{NO-BREAK SPACE}minutes before the first" in text
    assert page_of(release, "undo") in text


def test_page_of_a_failing_script_names_the_release(as_bob: Client, acme_hook: Hook) -> None:
    _failed(acme_hook)
    Release.objects.update(at=timezone.now() - timedelta(hours=1))

    text = text_of(as_bob.get(page_of(acme_hook.script)))

    assert "before the first failure, changed this script or its hooks" in text
    assert Run.objects.count() == 1
