"""Update dependents: a library's version goes live with new versions of what requires it."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import Organisation, User
from accounts.scopes import EVERYTHING
from core.errors import LimitExceededError
from core.http.origin import NOWHERE
from scripts_engine.flows.drafts import save_draft
from scripts_engine.flows.scripts import update_script
from scripts_engine.flows.source import SourceError
from scripts_engine.flows.update_dependents import outdated_dependents, update_dependents
from scripts_engine.models import Release, Script, ScriptVersion, Trigger, VersionState
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Author
from tests.factories import event_with, make_script, reply_of

pytestmark = pytest.mark.django_db


def make_library(organisation: Organisation, name: str, source: str) -> Script:
    return make_script(organisation, source, name, is_library=True)


def reply(script: Script) -> str:
    now = Script.objects.get(pk=script.pk)
    event = event_with()
    return reply_of(try_script(now, event=event, author=NOBODY, trigger=Trigger.ADMIN_GRAPHQL))


def live_of(script: Script) -> ScriptVersion:
    version = Script.objects.get(pk=script.pk).current_version
    assert version is not None
    return version


@pytest.fixture
def base(acme: Organisation) -> Script:
    return make_library(acme, "base", "return 'old'")


@pytest.fixture
def middle(acme: Organisation, base: Script) -> Script:
    return make_library(acme, "middle", "return require('base')")


@pytest.fixture
def using(acme: Organisation, base: Script) -> Script:
    return make_script(acme, "return require('base')", "using")


@pytest.fixture
def through(acme: Organisation, middle: Script) -> Script:
    return make_script(acme, "return require('middle')", "through")


@pytest.fixture
def by_bob(bob: User) -> Author:
    return Author(user=bob)


def test_a_draft_goes_live_with_all_that_require_the_library(
    base: Script, using: Script, through: Script, middle: Script, by_bob: Author
) -> None:
    other = make_script(base.organisation, "return 1", "other")
    draft = save_draft(base, "return 'new'", author=by_bob)
    release = update_dependents(draft, author=by_bob, note="new base")

    assert (reply(using), reply(through)) == ("new", "new")
    assert live_of(base) == draft
    assert {change.name for change in release.changes.all()} == {
        "base",
        "middle",
        "through",
        "using",
    }
    assert (release.note, live_of(other).number) == ("new base", 1)
    assert [live_of(each).created_by for each in (using, through)] == [by_bob.user] * 2


def test_the_live_version_reaches_only_what_has_another_one(
    base: Script, using: Script, by_bob: Author
) -> None:
    update_script(base, source="return 'new'", author=NOBODY)
    current = make_script(base.organisation, "return require('base')", "current")
    before = live_of(current)
    release = update_dependents(live_of(base), author=by_bob)

    assert [change.name for change in release.changes.all()] == ["using"]
    assert (reply(using), live_of(current)) == ("new", before)


def test_undoing_it_brings_the_old_versions_back(
    base: Script, using: Script, through: Script, by_bob: Author
) -> None:
    before = [live_of(each) for each in (base, using, through)]
    draft = save_draft(base, "return 'new'", author=by_bob)
    release = update_dependents(draft, author=by_bob)
    undo_release(release, held=EVERYTHING, origin=NOWHERE)

    assert [live_of(each) for each in (base, using, through)] == before
    assert (reply(using), reply(through)) == ("old", "old")


def test_drafts_of_dependents_stay_as_they_are(base: Script, using: Script, by_bob: Author) -> None:
    kept = save_draft(using, "return 'draft'", author=by_bob)
    update_dependents(save_draft(base, "return 'new'", author=by_bob), author=by_bob)

    kept.refresh_from_db()
    assert (kept.source, kept.state) == ("return 'draft'", VersionState.DRAFT)
    assert live_of(using).source == "return require('base')"


def test_nothing_to_update_is_refused_and_no_release(
    base: Script, using: Script, by_bob: Author
) -> None:
    count = Release.objects.count()

    with pytest.raises(ValidationError, match="have this version"):
        update_dependents(live_of(base), author=by_bob)
    assert (Release.objects.count(), using.versions.count()) == (count, 1)


def test_a_script_is_refused(using: Script, by_bob: Author) -> None:
    with pytest.raises(ValidationError, match="Choose a library"):
        update_dependents(live_of(using), author=by_bob)


def test_a_dependent_that_cannot_be_saved_stops_it_all(
    base: Script, using: Script, by_bob: Author
) -> None:
    both = make_library(base.organisation, "both", "return 1")
    update_script(using, source="return require('base'), require('both')", author=NOBODY)
    update_script(both, is_enabled=False, author=NOBODY)
    draft = save_draft(base, "return 'new'", author=by_bob)
    before = (live_of(base), using.versions.count(), Release.objects.count())

    with pytest.raises(SourceError, match="using:1: The library “both” is disabled"):
        update_dependents(draft, author=by_bob)
    assert (live_of(base), using.versions.count(), Release.objects.count()) == before


def test_a_full_quota_stops_it_all(base: Script, using: Script, by_bob: Author) -> None:
    draft = save_draft(base, "return 'new'", author=by_bob)
    Organisation.objects.update(run_bytes_quota=1)

    with pytest.raises(LimitExceededError):
        update_dependents(draft, author=by_bob)
    assert (live_of(base).source, using.versions.count()) == ("return 'old'", 1)


def test_what_only_a_disabled_library_loads_is_left_out(
    base: Script, middle: Script, through: Script, using: Script, by_bob: Author
) -> None:
    update_script(middle, is_enabled=False, author=NOBODY)
    draft = save_draft(base, "return 'new'", author=by_bob)
    draft.script = base

    assert [script.name for script in outdated_dependents(base.organisation, draft)] == ["using"]


def test_finding_dependents_takes_the_same_statements_however_many(
    base: Script, django_assert_num_queries: Any
) -> None:
    for number in range(10):
        make_script(base.organisation, "return require('base')", f"using {number}")
    update_script(base, source="return 'new'", author=NOBODY)
    version = live_of(base)

    with django_assert_num_queries(5):
        assert len(outdated_dependents(base.organisation, version)) == 10


def test_other_organisations_are_left_alone(
    base: Script, globex: Organisation, by_bob: Author
) -> None:
    theirs = make_library(globex, "base", "return 'theirs'")
    foreign = make_script(globex, "return require('base')", "using")
    make_script(base.organisation, "return require('base')", "using")
    update_dependents(save_draft(base, "return 'new'", author=by_bob), author=by_bob)

    assert reply(foreign) == "theirs"
    assert live_of(theirs).number == live_of(foreign).number == 1
