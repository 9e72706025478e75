"""Releases are deleted by number and age, but for those that put live what is live."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation, User
from scripts_engine.flows.definitions import forget_definitions
from scripts_engine.flows.drafts import publish, save_draft
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Release, RunStorage, Script, ScriptVersion
from scripts_engine.releases.versions import add_version
from scripts_engine.runs.spec import Author
from tests.factories import NOBODY, make_script

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(days=401)


def numbers(organisation: Organisation) -> list[int]:
    rows = Release.objects.filter(organisation=organisation)
    return list(rows.values_list("number", flat=True))


def counted(organisation: Organisation) -> int:
    return RunStorage.objects.get(pk=organisation.pk).definition_bytes


def saved(script: Script, *results: int) -> Script:
    for result in results:
        script = update_script(script, author=NOBODY, source=f"return {result}")
    return script


def age_versions() -> None:
    ScriptVersion.objects.update(created_at=timezone.now() - LONG_AGO)


def test_the_newest_releases_stay_and_the_one_that_put_live_what_is_live(
    acme: Organisation, globex: Organisation, settings: Any
) -> None:
    settings.RELEASES_KEPT = 2
    make_script(acme, name="other")
    saved(make_script(acme), 2, 3, 4)
    saved(make_script(globex), 2)
    before, size = (
        counted(acme),
        sum(
            Release.objects.filter(organisation=acme, number__in=[2, 3]).values_list(
                "bytes", flat=True
            )
        ),
    )
    forget_definitions()

    assert (numbers(acme), numbers(globex)) == ([5, 4, 1], [2, 1])
    assert counted(acme) == before - size


def test_old_releases_go_but_for_the_one_that_put_live_what_is_live(acme: Organisation) -> None:
    saved(make_script(acme), 2, 3)
    Release.objects.update(at=timezone.now() - LONG_AGO)
    forget_definitions()

    assert numbers(acme) == [3]


def test_without_limits_every_release_stays(acme: Organisation, settings: Any) -> None:
    settings.RELEASES_KEPT = settings.RELEASES_KEPT_DAYS = 0
    saved(make_script(acme), 2, 3)
    Release.objects.update(at=timezone.now() - LONG_AGO)
    forget_definitions()

    assert numbers(acme) == [3, 2, 1]


def test_versions_stay_while_a_release_names_them(
    acme: Organisation, bob: User, settings: Any
) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = settings.RELEASES_KEPT = 1
    script = saved(make_script(acme), 2, 3, 4)
    age_versions()
    forget_definitions()

    # The newest release names the version before.
    assert numbers(acme) == [4]
    assert list(script.versions.values_list("number", flat=True)) == [4, 3]


def test_a_deleted_script_stays_while_a_release_names_it(acme: Organisation, settings: Any) -> None:
    script = make_script(acme)
    delete_script(script)
    Script.objects.update(deleted_at=timezone.now() - LONG_AGO)
    age_versions()
    forget_definitions()
    kept = Script.objects.filter(pk=script.pk).exists()
    Release.objects.update(at=timezone.now() - LONG_AGO)
    forget_definitions()

    assert kept
    assert not Script.objects.filter(pk=script.pk).exists()
    assert counted(acme) == 0


def test_drafts_stay_however_old_they_are(acme: Organisation, bob: User, settings: Any) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = settings.RELEASES_KEPT = 1
    script = make_script(acme)
    draft = save_draft(script, "return 0", author=Author(user=bob))
    saved(script, 2, 3, 4)
    age_versions()
    forget_definitions()

    assert draft in script.versions.all()
    revision = Script.objects.get().revision
    assert publish(acme, [draft], expected_revisions={script.pk: revision}).number == 5


def test_a_required_version_stays_while_another_requires_it(
    acme: Organisation, settings: Any
) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = settings.RELEASES_KEPT = 1
    library = make_script(acme, name="library", is_library=True)
    required = library.versions.get()
    script = make_script(acme)
    requirement = script.versions.get().requirements.create(
        name="library", library_version=required
    )
    saved(library, 2, 3, 4)
    age_versions()
    forget_definitions()
    kept = required in library.versions.all()
    requirement.delete()
    forget_definitions()

    assert kept
    assert required not in library.versions.all()


def test_a_version_that_was_never_live_is_deleted_with_the_others(
    acme: Organisation, settings: Any
) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = settings.RELEASES_KEPT = 1
    script = make_script(acme)
    superseded = add_version(acme, script.pk, "return 0", NOBODY)
    saved(script, 2, 3)
    age_versions()
    forget_definitions()

    assert superseded not in script.versions.all()
