"""The Releases pages: what went live, when and by whom; undone in a click."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation, User
from hooks.models import Hook
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Release, Run, Script
from scripts_engine.runs.spec import NOBODY
from tests import factories
from tests.admin.pages import CONFIRMED, everything, list_of, page_of, run_of, text_of


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


def test_second_undo_says_that_it_is_done(as_bob: Client, published: Release) -> None:
    as_bob.post(page_of(published, "undo"), CONFIRMED)

    answer = as_bob.post(page_of(published, "undo"), CONFIRMED, follow=True)

    assert "is undone already" in text_of(answer)
    assert Release.objects.count() == 3


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

    assert "before the first failure, changed this script" in text
    assert Run.objects.count() == 1
