"""Lists of what runs: the last run, counts of 24 hours, attention first, bounded queries."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation
from hooks.flows.call_notes import call_notes
from hooks.models import Hook
from jobs.models import Schedule
from jobs.models.schedule import TickOutcome
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Script
from tests import factories
from tests.admin.pages import list_of, page_of, text_of
from tests.client import Client
from tests.factories import make_hook, make_script
from tests.hooks.github import call, make_github, signed

pytestmark = pytest.mark.postgresql


def rows_of(client: Client, model: type[Any]) -> list[str]:
    """The texts of the rows, without tags."""
    page = html.unescape(text_of(client.get(list_of(model))))
    body = page[page.index("<tbody") : page.rindex("</tbody>")]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]


def queries_of(client: Client, model: type[Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(list_of(model)).status_code == 200
    return len(captured)


def hour_ago(hours: float = 1) -> Any:
    return timezone.now() - timedelta(hours=hours)


def test_a_hook_shows_its_sender_last_call_and_counts(as_bob: Client, acme: Organisation) -> None:
    issued = make_github(acme)
    call(issued)
    call(issued, headers=signed(b"another body"))
    call_notes.write()

    (row,) = rows_of(as_bob, Hook)

    assert "GitHub" in row
    assert "Succeeded just now" in row
    assert "1, 1 refused" in row


def test_a_hook_without_calls_says_so(as_bob: Client, acme_hook: Hook) -> None:
    (row,) = rows_of(as_bob, Hook)

    assert "No sender" in row
    assert "No recorded calls 0" in row


def test_runs_of_the_day_before_do_not_count(as_bob: Client, acme_hook: Hook) -> None:
    factories.make_past_run(acme_hook, hour_ago(25), "failed")
    factories.make_past_run(acme_hook, hour_ago(2))

    (row,) = rows_of(as_bob, Hook)

    assert "2 hours ago 1 " in row
    assert "failed" not in row


def test_a_hook_that_failed_comes_first(as_bob: Client, acme_hook: Hook) -> None:
    make_hook(acme_hook.script, "newer")
    factories.make_past_run(acme_hook, hour_ago(), "failed")

    first, second = rows_of(as_bob, Hook)

    assert acme_hook.name in first
    assert "newer" in second


def test_sorting_by_a_column_ignores_attention(as_bob: Client, acme_hook: Hook) -> None:
    make_hook(acme_hook.script, "newer")
    factories.make_past_run(acme_hook, hour_ago(), "failed")
    created = 8

    text = text_of(as_bob.get(list_of(Hook), {"o": f"-{created}"}))

    assert text.index("newer") < text.index(page_of(acme_hook))


def test_a_script_shows_its_last_run_counts_and_users(as_bob: Client, acme_hook: Hook) -> None:
    factories.make_past_run(acme_hook, hour_ago(3))
    factories.make_past_run(acme_hook, hour_ago(2), "failed")
    factories.make_past_draft(acme_hook, hour_ago(), "failed")

    (row,) = rows_of(as_bob, Script)

    assert "Failed 2 hours ago 2, 1 failed 1 hook" in row


def test_a_failed_script_comes_first(as_bob: Client, acme_hook: Hook) -> None:
    make_script(acme_hook.organisation, "return 1", "newer script")
    factories.make_past_run(acme_hook, hour_ago(), "failed")

    first, _ = rows_of(as_bob, Script)

    assert acme_hook.script.name in first


def test_runs_of_others_are_not_counted(
    as_bob: Client, acme_hook: Hook, globex: Organisation
) -> None:
    other = make_hook(make_script(globex, "return 1", "of globex")).hook
    factories.make_past_run(other, hour_ago(), "failed")

    (row,) = rows_of(as_bob, Hook)

    assert "failed" not in row


def test_an_organisation_shows_its_last_run_and_counts(
    as_root: Client, acme_hook: Hook, globex: Organisation
) -> None:
    factories.make_past_run(acme_hook, hour_ago(3))
    factories.make_past_run(acme_hook, hour_ago(2), "failed")

    acme, other = rows_of(as_root, Organisation)

    assert "Failed 2 hours ago 2, 1 failed" in acme
    assert "None recorded 0 0 bytes" in other


def test_organisations_take_no_more_queries_for_more_rows(as_root: Client, acme_hook: Hook) -> None:
    factories.make_past_run(acme_hook, hour_ago())
    queries_of(as_root, Organisation)
    few = queries_of(as_root, Organisation)
    for number in range(5):
        organisation = factories.make_organisation(f"Organisation {number}")
        hook = make_hook(make_script(organisation, "return 1", "script")).hook
        factories.make_past_run(hook, hour_ago())

    assert queries_of(as_root, Organisation) == few


def test_a_schedule_shows_the_state_of_its_last_run(as_bob: Client, acme_hook: Hook) -> None:
    schedule = create_schedule(acme_hook.script, name="nightly", cron="0 2 * * *")
    run = factories.make_past_run(acme_hook, hour_ago(2), "failed")
    schedule.ticks.create(tick_at=hour_ago(2), outcome=TickOutcome.RAN, run_id=run.pk)
    schedule.ticks.create(tick_at=hour_ago(1), outcome=TickOutcome.SKIPPED_MISSED)

    (row,) = rows_of(as_bob, Schedule)

    assert "Failed 2 hours ago" in row


@pytest.mark.parametrize("model", [Hook, Script], ids=["hooks", "scripts"])
def test_more_rows_take_no_more_queries(
    as_bob: Client, acme: Organisation, model: type[Any]
) -> None:
    first = make_hook(make_script(acme, "return 1", "script 0")).hook
    factories.make_past_run(first, hour_ago(), "failed")
    # The first page of a login takes more.
    queries_of(as_bob, model)
    few = queries_of(as_bob, model)
    for number in range(1, 6):
        hook = make_hook(make_script(acme, "return 1", f"script {number}")).hook
        factories.make_past_run(hook, hour_ago(), "failed")

    assert queries_of(as_bob, model) == few


@pytest.mark.parametrize("model", [Hook, Script, Organisation], ids=lambda model: model.__name__)
def test_a_list_of_activity_takes_five_queries_of_its_own(
    as_bob: Client, acme_hook: Hook, model: type[Any]
) -> None:
    factories.make_past_run(acme_hook, hour_ago(), "failed")
    queries_of(as_bob, model)

    # After those of every page: the session, the person, the second factor and the roles.
    assert queries_of(as_bob, model) == 4 + 5
