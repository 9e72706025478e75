"""Releases of one script at the same time: one is made, the others conflict and do nothing."""

from collections import Counter
from collections.abc import Callable

import pytest

from accounts.scopes import EVERYTHING
from core.errors import ConflictError
from core.http.origin import NOWHERE
from scripts_engine.flows.drafts import publish, save_draft
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.spec import Author
from tests.concurrency import at_once
from tests.factories import NOBODY, make_organisation, make_script, make_user

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = 4


@pytest.fixture
def script() -> Script:
    return make_script(make_organisation(), "return 0")


def outcomes(*acts: Callable[[], object]) -> list[str]:
    def outcome(number: int) -> str:
        try:
            acts[number]()
        except ConflictError:
            return "conflict"
        return "done"

    return at_once(len(acts), outcome)


def drafts_of(script: Script) -> list[ScriptVersion]:
    """The drafts of several authors, begun from the same version."""
    organisation = script.organisation
    people = [make_user(organisation, f"author{number}@example.com") for number in range(TIMES)]
    return [
        save_draft(script, f"return {number}", author=Author(user=user))
        for number, user in enumerate(people, start=1)
    ]


def publishing(*versions: ScriptVersion) -> Callable[[], object]:
    return lambda: publish(versions[0].script.organisation, versions)


def test_of_drafts_of_one_script_one_goes_live(script: Script) -> None:
    drafts = drafts_of(script)

    found = outcomes(*(publishing(draft) for draft in drafts))

    assert Counter(found) == {"done": 1, "conflict": TIMES - 1}
    live = drafts[found.index("done")]
    assert Script.objects.get().current_version == live
    assert set(script.versions.drafts()) == set(drafts) - {live}
    assert [release.changes.count() for release in Release.objects.all()] == [1, 1]


def test_of_releases_that_share_a_script_one_is_made_whole(script: Script) -> None:
    organisation = script.organisation
    shared, others = (
        drafts_of(script),
        [make_script(organisation, "return 0", f"other {number}") for number in range(TIMES)],
    )
    author = Author(user=make_user(organisation, "bob@example.com"))
    own = [save_draft(other, "return 9", author=author) for other in others]
    before = Release.objects.count()

    found = outcomes(*(publishing(*pair) for pair in zip(own, shared, strict=True)))

    assert Counter(found) == {"done": 1, "conflict": TIMES - 1}
    changed = Script.objects.filter(revision=2).values_list("pk", flat=True)
    assert set(changed) == {script.pk, others[found.index("done")].pk}
    assert Release.objects.count() == before + 1
    assert Release.objects.order_by("number").last().changes.count() == 2  # type: ignore[union-attr]


def test_of_sources_that_expect_one_revision_one_goes_live(script: Script) -> None:
    def saving(number: int) -> Callable[[], object]:
        source = f"return {number}"
        return lambda: update_script(script, source=source, author=NOBODY, expected_revision=1)

    found = outcomes(*(saving(number) for number in range(1, TIMES + 1)))

    assert Counter(found) == {"done": 1, "conflict": TIMES - 1}
    assert Script.objects.get().source == f"return {1 + found.index('done')}"
    assert script.versions.count() == Release.objects.count() == 2


@pytest.mark.parametrize("force", [False, True])
def test_a_release_is_undone_once(script: Script, force: bool) -> None:
    update_script(script, source="return 1", author=NOBODY)
    release = Release.objects.get(number=2)

    def undo() -> None:
        undo_release(release, held=EVERYTHING, force=force, origin=NOWHERE)

    found = outcomes(*[undo] * TIMES)

    assert Counter(found) == {"done": 1, "conflict": TIMES - 1}
    assert Script.objects.get().source == "return 0"
    assert Release.objects.get(undoes=release).number == Release.objects.count() == 3


def test_of_an_undo_and_a_release_upon_what_it_undoes_one_is_made(script: Script) -> None:
    update_script(script, source="return 8", author=NOBODY)
    release, draft = Release.objects.get(number=2), drafts_of(Script.objects.get())[0]

    found = outcomes(
        publishing(draft),
        lambda: undo_release(release, held=EVERYTHING, origin=NOWHERE),
    )

    assert Counter(found) == {"done": 1, "conflict": 1}
    source = "return 1" if found[0] == "done" else "return 0"
    assert Script.objects.get().source == source
    assert Release.objects.count() == 3
