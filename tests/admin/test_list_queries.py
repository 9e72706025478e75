"""How often pages ask the database: more rows of a list take no more queries."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Organisation, User
from accounts.scopes import EVERYTHING
from core.http.origin import NOWHERE
from hooks.flows.hooks import pin_hook
from hooks.models import Hook
from jobs.models import Schedule
from jobs.schedules.schedules import create_schedule
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.spec import Author
from tests.admin.pages import list_of, page_of, run_of, text_of
from tests.factories import make_hook, make_script


def add_one_of_each(acme: Organisation, author: Author, name: str) -> None:
    """A script with a run, two versions, a pinned hook and a schedule, and an undone release."""
    script = make_script(acme, "return 1", name)
    hook = make_hook(script, name).hook
    run_of(hook)
    update_script(script, source="return 2", author=author)
    pin_hook(hook, script.versions.get(number=1))
    create_schedule(script, name=name, cron="0 0 * * *")
    update_script(script, is_enabled=False, author=author)
    undo_release(Release.objects.latest("number"), held=EVERYTHING, origin=NOWHERE)


def queries_of(client: Client, address: str) -> tuple[int, str]:
    with CaptureQueriesContext(connection) as captured:
        text = text_of(client.get(address))
    return len(captured), text


@pytest.mark.parametrize("model", [Release, Script, Hook, Schedule, ScriptVersion])
def test_list_takes_as_many_queries_for_many_rows_as_for_few(
    as_bob: Client, acme: Organisation, bob: User, model: Any
) -> None:
    for number in range(2):
        add_one_of_each(acme, Author(user=bob), f"few {number}")
    as_bob.get(list_of(model))
    few, _ = queries_of(as_bob, list_of(model))
    rows = model.objects.count()
    for number in range(4):
        add_one_of_each(acme, Author(user=bob), f"many {number}")

    many, text = queries_of(as_bob, list_of(model))

    assert model.objects.count() > rows
    assert "many 3" in text
    assert many == few


def test_a_page_asks_once_whether_its_row_is_within_reach(
    as_bob: Client, acme: Organisation
) -> None:
    script = make_script(acme)
    with CaptureQueriesContext(connection) as queries:
        assert as_bob.get(page_of(script)).status_code == 200

    asked = [each["sql"] for each in queries if each["sql"].startswith('SELECT 1 AS "a" FROM')]
    assert len([sql for sql in asked if 'FROM "scripts_engine_script"' in sql]) == 1
