"""Drafts: saved for their author, published together, and kept when they have run."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.audit import person
from accounts.flows.api_keys import IssuedApiKey
from accounts.models import Organisation, User
from core.errors import ConflictError, LimitExceededError, NotFoundError, RateLimitedError
from core.http.origin import Origin
from scripts_engine.definition_quota import ROW_BYTES
from scripts_engine.flows.drafts import delete_draft, publish, save_draft
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.flows.source import SourceError
from scripts_engine.models import Release, RunStorage, Script, ScriptVersion, Trigger, VersionState
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import Author
from tests.concurrency import at_once
from tests.factories import NOBODY, event_with, make_script, reply_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def by_bob(bob: User) -> Author:
    return Author(user=bob)


@pytest.fixture
def by_key(acme_key: IssuedApiKey) -> Author:
    return Author(api_key=acme_key.api_key)


def run(script: Script, version: ScriptVersion) -> str:
    event = event_with()
    made = try_script(
        script, event=event, author=NOBODY, trigger=Trigger.ADMIN_GRAPHQL, version=version
    )
    return reply_of(made)


def counted() -> int:
    return RunStorage.objects.get().definition_bytes


def test_a_draft_changes_nothing_that_runs(script: Script, by_bob: Author) -> None:
    draft = save_draft(script, "return 2", author=by_bob)

    now = Script.objects.get()
    assert (draft.number, draft.state, draft.published_at) == (2, VersionState.DRAFT, None)
    assert draft.base_id == now.current_version_id != draft.pk
    assert (now.revision, Release.objects.count()) == (1, 1)


def test_saving_again_changes_the_draft_and_its_count(script: Script, by_bob: Author) -> None:
    before = counted()
    save_draft(script, "return 2", author=by_bob)
    again = save_draft(script, "return 'more'", author=by_bob)
    longer = counted()
    save_draft(script, "return 3", author=by_bob)

    assert again.number == 2
    assert script.versions.drafts().get().source == "return 3"
    assert longer == before + ROW_BYTES + len("return 'more'")
    assert counted() == before + ROW_BYTES + len("return 3")


def test_a_draft_changed_since_its_review_is_not_published(
    script: Script, by_bob: Author, acme: Organisation
) -> None:
    read = save_draft(script, "return 'harmless'", author=by_bob)
    changed = save_draft(script, "return secrets.get('KEY')", author=by_bob)

    with pytest.raises(NotFoundError):
        publish(acme, [read])

    assert Release.objects.count() == 1
    assert publish(acme, [changed]).number == 2
    assert Script.objects.get().source == "return secrets.get('KEY')"


def test_each_author_has_a_draft_of_their_own(
    script: Script, by_bob: Author, by_key: Author
) -> None:
    of_bob = save_draft(script, "return 2", author=by_bob)
    of_key = save_draft(script, "return 3", author=by_key)

    assert of_bob.pk != of_key.pk
    assert [draft.author for draft in script.versions.drafts()] == ["warehouse", "bob@example.com"]


def test_a_draft_that_has_run_is_kept_as_it_ran(script: Script, by_bob: Author) -> None:
    draft = save_draft(script, "return 2", author=by_bob)
    reply = run(script, draft)
    after = save_draft(script, "return 3", author=by_bob)

    ran = ScriptVersion.objects.get(pk=draft.pk)
    assert (reply, run(script, after)) == ("2", "3")
    assert (ran.source, ran.state, ran.has_run) == ("return 2", VersionState.PAST, True)
    assert (after.number, after.base_id) == (3, draft.base_id)
    assert list(script.versions.drafts()) == [after]
    assert ran not in script.versions.to_list()


def test_a_draft_that_does_not_compile_is_refused(script: Script, by_bob: Author) -> None:
    with pytest.raises(SourceError) as refused:
        save_draft(script, "return\n(", author=by_bob)

    assert refused.value.line == 2
    assert ScriptVersion.objects.count() == 1


def test_a_draft_beyond_the_quota_is_refused(script: Script, by_bob: Author, settings: Any) -> None:
    save_draft(script, "return 2", author=by_bob)
    settings.RUN_BYTES_PER_ORGANISATION = counted() + 5

    with pytest.raises(LimitExceededError):
        save_draft(script, "return 2 -- more", author=by_bob)

    assert script.versions.drafts().get().source == "return 2"
    assert save_draft(script, "return 20000", author=by_bob).source == "return 20000"


def test_drafts_count_as_saves_of_their_script(
    script: Script, by_bob: Author, settings: Any
) -> None:
    settings.SCRIPT_SAVES_PER_MINUTE = 2
    save_draft(script, "return 2", author=by_bob)
    update_script(script, author=by_bob, source="return 3")

    with pytest.raises(RateLimitedError):
        save_draft(script, "return 4", author=by_bob)

    assert script.versions.drafts().get().source == "return 2"


def test_a_draft_for_an_older_revision_is_a_conflict(
    script: Script, bob: User, by_bob: Author
) -> None:
    update_script(script, author=NOBODY, source="return 2", origin=Origin(actor=person(bob)))

    with pytest.raises(ConflictError) as conflict:
        save_draft(script, "return 3", author=by_bob, expected_revision=1)

    assert conflict.value.extensions["by"] == "bob@example.com"
    assert not script.versions.drafts().exists()
    draft = save_draft(script, "return 3", author=by_bob, expected_revision=2)
    assert draft.base_id == Script.objects.get().current_version_id


def test_a_deleted_script_takes_no_draft(script: Script, by_bob: Author) -> None:
    delete_script(script)

    with pytest.raises(NotFoundError):
        save_draft(script, "return 2", author=by_bob)

    assert ScriptVersion.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_saves_at_once_there_is_one_draft(script: Script, by_bob: Author) -> None:
    saved = at_once(5, lambda number: save_draft(script, f"return {number}", author=by_bob).pk)

    assert script.versions.drafts().get().pk in saved
    assert script.versions.drafts().count() == 1


# --- Deleting ------------------------------------------------------------------------------------


def test_a_deleted_draft_is_gone_and_uncounted(script: Script, by_bob: Author) -> None:
    before = counted()
    draft = save_draft(script, "return 2", author=by_bob)
    delete_draft(draft)

    assert not ScriptVersion.objects.filter(pk=draft.pk).exists()
    assert counted() == before


def test_a_deleted_draft_that_has_run_stays_for_its_runs(script: Script, by_bob: Author) -> None:
    draft = save_draft(script, "return 2", author=by_bob)
    run(script, draft)
    delete_draft(draft)

    assert ScriptVersion.objects.get(pk=draft.pk).state == VersionState.PAST
    assert not script.versions.drafts().exists()


def test_what_is_live_is_no_draft_to_delete(script: Script) -> None:
    live = script.versions.get()

    with pytest.raises(NotFoundError):
        delete_draft(live)

    assert script.versions.get() == live


# --- Publishing ----------------------------------------------------------------------------------


def test_drafts_of_two_scripts_go_live_as_one_release(
    acme: Organisation, script: Script, by_bob: Author, by_key: Author, bob: User
) -> None:
    other = make_script(acme, name="other")
    drafts = [
        save_draft(script, "return 2", author=by_bob),
        save_draft(other, "return 3", author=by_key),
    ]
    release = publish(acme, drafts, note="together", origin=Origin(actor=person(bob)))

    assert (release.number, release.note, release.actor_label) == (3, "together", "bob@example.com")
    assert sorted(release.changes.values_list("name", "action")) == [
        ("echo", "Update"),
        ("other", "Update"),
    ]
    assert [each.source for each in Script.objects.order_by("name")] == ["return 2", "return 3"]
    assert list(Script.objects.values_list("revision", flat=True)) == [2, 2]
    published = ScriptVersion.objects.get(pk=drafts[0].pk)
    assert (published.state, published.draft_of) == (VersionState.LIVE, "")
    assert published.published_at is not None


def test_a_draft_gets_a_later_number_than_what_was_saved_meanwhile(
    acme: Organisation, script: Script, by_bob: Author
) -> None:
    draft = save_draft(script, "return 2", author=by_bob)
    update_script(script, author=NOBODY, source="return 3")
    publish(acme, [draft], expected_revisions={script.pk: 2})

    numbers = script.versions.values_list("number", "source")
    assert list(numbers) == [(4, "return 2"), (3, "return 3"), (1, script.source)]


def test_a_draft_replaces_only_what_its_author_has_seen(
    acme: Organisation, script: Script, bob: User, by_bob: Author, by_key: Author
) -> None:
    draft = save_draft(script, "return 2", author=by_key)
    other = save_draft(make_script(acme, name="other"), "return 2", author=by_key)
    origin = Origin(actor=person(bob))
    publish(acme, [save_draft(script, "return 3", author=by_bob)], origin=origin)
    before = Release.objects.count()

    with pytest.raises(ConflictError) as conflict:
        publish(acme, [other, draft])
    with pytest.raises(ConflictError):
        publish(acme, [draft], expected_revisions={script.pk: 1})

    assert conflict.value.extensions["by"] == "bob@example.com"
    assert Release.objects.count() == before
    assert run(script, script.versions.get(number=3)) == "3"
    # The same source again, by an author who has seen what is live.
    assert save_draft(script, "return 2", author=by_key, expected_revision=2) == draft
    assert publish(acme, [other, draft]).changes.count() == 2


def test_a_past_version_goes_live_again_as_it_is(acme: Organisation, script: Script) -> None:
    first = script.versions.get()
    update_script(script, author=NOBODY, source="return 2")
    release = publish(acme, [first])

    assert Script.objects.get().current_version == first
    assert script.versions.count() == 2
    assert release.changes.get().version_after == first.pk


def test_publishing_what_is_live_is_refused(acme: Organisation, script: Script) -> None:
    with pytest.raises(ValidationError) as refused:
        publish(acme, list(script.versions.all()))

    assert list(refused.value.message_dict) == ["versions"]
    assert Release.objects.count() == 1


def test_two_versions_of_one_script_are_refused(
    acme: Organisation, script: Script, by_bob: Author, by_key: Author
) -> None:
    drafts = [
        save_draft(script, "return 2", author=by_bob),
        save_draft(script, "return 3", author=by_key),
    ]
    with pytest.raises(ValidationError) as refused:
        publish(acme, drafts)

    assert list(refused.value.message_dict) == ["versions"]
    assert (script.versions.drafts().count(), Release.objects.count()) == (2, 1)


def test_a_note_that_is_too_long_is_refused(
    acme: Organisation, script: Script, by_bob: Author
) -> None:
    draft = save_draft(script, "return 2", author=by_bob)

    with pytest.raises(ValidationError) as refused:
        publish(acme, [draft], note="x" * 501)

    assert list(refused.value.message_dict) == ["note"]
    assert (script.versions.drafts().count(), Release.objects.count()) == (1, 1)


def test_another_organisations_version_is_not_published(
    acme: Organisation, globex: Organisation, script: Script
) -> None:
    foreign = make_script(globex)
    update_script(foreign, author=NOBODY, source="return 2")

    with pytest.raises(NotFoundError):
        publish(acme, [foreign.versions.get(number=1)])

    assert Script.objects.get(pk=foreign.pk).source == "return 2"
    assert Release.objects.filter(organisation=acme).count() == 1


def test_a_release_of_many_takes_as_many_statements_as_of_two(
    acme: Organisation, by_bob: Author, django_assert_max_num_queries: Any
) -> None:
    scripts = [make_script(acme, name=f"script {number}") for number in range(40)]
    drafts = [save_draft(script, "return 2", author=by_bob) for script in scripts]

    with django_assert_max_num_queries(30):
        release = publish(acme, drafts)

    assert release.changes.count() == 40
    assert Script.objects.filter(current_version__source="return 2").count() == 40
