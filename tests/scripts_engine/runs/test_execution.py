"""Running a source without saving it."""

import pytest

from accounts.models import Organisation
from scripts_engine.models import Script, Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Event
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


def test_a_secret_in_an_unsaved_source_is_redacted(script: Script, acme: Organisation) -> None:
    set_secret(acme, name="SHOP_KEY", value="hunter2hunter2")
    source = 'secrets.get("SHOP_KEY") return "hunter2hunter2" == "x"'

    run = try_script(script, event=EVENT, author=NOBODY, trigger=Trigger.ADMIN, source=source)

    assert "hunter2" not in run.unsaved_source
