"""Running a source without saving it."""

import pytest

from accounts.models import Organisation, User
from scripts_engine.flows.drafts import publish, save_draft
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Author, Event
from scripts_engine.secrets import set_secret
from tests import factories

pytestmark = pytest.mark.django_db
EVENT = Event("POST", "", (), b"an order", "")


@pytest.fixture
def script(acme: Organisation) -> Script:
    return factories.make_script(acme, "return 'saved'")


def test_an_unsaved_source_runs_and_is_recorded_in_its_run(script: Script) -> None:
    source = 'return "unsaved, " .. params.get("body")'

    run = try_script(script, event=EVENT, author=NOBODY, trigger=Trigger.ADMIN, source=source)

    run.refresh_from_db()
    assert bytes(run.response_body) == b"unsaved, an order"
    assert (run.script_version, run.unsaved_source) == (None, source)
    script.refresh_from_db()
    assert script.source == "return 'saved'"
    assert script.versions.count() == 1


def test_an_unchanged_source_runs_as_the_saved_version(script: Script) -> None:
    run = try_script(
        script, event=EVENT, author=NOBODY, trigger=Trigger.ADMIN, source=script.source
    )

    assert (run.script_version, run.unsaved_source) == (script.current_version, "")


def test_the_source_of_the_authors_draft_runs_as_the_draft(
    script: Script, alice: User, bob: User
) -> None:
    bobs, others = Author(user=bob), Author(user=alice)
    draft = save_draft(script, "error('typing mistake')", author=bobs)

    def run_of(author: Author) -> Run:
        return try_script(
            script, event=EVENT, author=author, trigger=Trigger.ADMIN, source=draft.source
        )

    own, another = run_of(bobs), run_of(others)

    assert (own.script_version, own.unsaved_source, own.is_draft) == (draft, "", True)
    assert (another.script_version, another.is_draft) == (None, True)
    # A run names the source that it ran.
    assert save_draft(script, "return 2", author=bobs) != draft


def test_the_source_of_a_draft_runs_with_the_libraries_of_now(
    acme: Organisation, script: Script, bob: User
) -> None:
    author = Author(user=bob)
    library = factories.make_script(acme, "return 1", name="numbers", is_library=True)
    draft = save_draft(script, 'return tostring(require("numbers"))', author=author)
    update_script(library, author=author, source="return 2")

    run = try_script(script, event=EVENT, author=author, trigger=Trigger.ADMIN, source=draft.source)

    assert (bytes(run.response_body), run.script_version) == (b"2", None)


def test_a_draft_stays_one_in_its_runs_when_it_is_published(
    acme: Organisation, script: Script, bob: User
) -> None:
    author = Author(user=bob)
    draft = save_draft(script, "return 2", author=author)
    before = try_script(script, event=EVENT, author=author, trigger=Trigger.ADMIN, version=draft)
    publish(acme, [draft])
    draft.refresh_from_db()
    script.refresh_from_db()
    after = try_script(script, event=EVENT, author=author, trigger=Trigger.ADMIN, version=draft)

    before.refresh_from_db()
    assert (before.is_draft, after.is_draft) == (True, False)
    assert before.script_version == after.script_version == draft


def test_a_secret_in_an_unsaved_source_is_redacted(script: Script, acme: Organisation) -> None:
    set_secret(acme, name="SHOP_KEY", value="hunter2hunter2")
    source = 'secrets.get("SHOP_KEY") return "hunter2hunter2" == "x"'

    run = try_script(script, event=EVENT, author=NOBODY, trigger=Trigger.ADMIN, source=source)

    assert "hunter2" not in run.unsaved_source
