"""The searches of the run list: response status, error text, payload text, failures alike."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation, Role, User
from hooks.models import Hook
from scripts_engine.admin.runs import filters
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Run
from tests import factories
from tests.admin.pages import list_of, logged_in, page_of, run_of, text_of
from tests.admin.roles import client_of
from tests.factories import hook_that
from tests.query_plans import plan_of
from tests.working_queue import make_due, queue, work_queue

pytestmark = pytest.mark.postgresql

NOW = timezone.now
RUNS = list_of(Run)


def found(client: Client, **query: str) -> list[Run]:
    """The runs that the list shows, newest first."""
    response = client.get(RUNS, query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


def answered(hook: Hook, status: int) -> Run:
    return factories.make_past_run(hook, NOW(), response_status=status)


def failed(hook: Hook, error: str, minutes_ago: int = 0, **fields: Any) -> Run:
    at = NOW() - timedelta(minutes=minutes_ago)
    return factories.make_past_run(hook, at, "failed", error_message=error, **fields)


def called(hook: Hook, body: bytes, minutes_ago: int) -> Run:
    at = NOW() - timedelta(minutes=minutes_ago)
    return factories.make_past_run(hook, at, request_body=body)


def test_a_run_is_found_by_the_first_digits_of_its_id(as_bob: Client, acme_hook: Hook) -> None:
    older, newer = answered(acme_hook, 200), answered(acme_hook, 201)
    Run.objects.filter(pk=older.pk).update(id="01890000-aaaa-7000-8000-000000000001")

    assert [run.pk.hex for run in found(as_bob, q="01890000-AAAA")] == [
        "01890000aaaa70008000000000000001"
    ]
    assert found(as_bob, q=newer.pk.hex[:20]) == [newer]
    assert found(as_bob, q="0189000") == []
    assert found(as_bob, q="01890000-bbbb") == []


@pytest.mark.parametrize(
    ("typed", "statuses"),
    [
        ("404", {404}),
        ("4xx", {404, 422}),
        (" 5XX ", {500}),
        ("200", {200}),
        ("2xx", {200, 201}),
        ("418", set()),
        ("", {200, 201, 404, 422, 500}),
    ],
)
def test_runs_are_found_by_response_status(
    as_bob: Client, acme_hook: Hook, typed: str, statuses: set[int]
) -> None:
    Run.objects.bulk_create(
        factories.past_run(acme_hook, NOW(), response_status=status)
        for status in (200, 201, 404, 422, 500)
    )

    assert {run.response_status for run in found(as_bob, response=typed)} == statuses


@pytest.mark.parametrize("typed", ["xx", "99", "600", "40x", "4444", "²00", "٤٠٤", "4%", "\0"])
def test_an_invalid_status_finds_nothing_and_is_explained(
    as_bob: Client, acme_hook: Hook, typed: str
) -> None:
    answered(acme_hook, 404)

    response = as_bob.get(RUNS, {"response": typed})

    assert response.status_code == 200
    assert response.context["cl"].result_count == 0
    assert "By response status: " in text_of(response)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans so small a table")
@pytest.mark.parametrize("typed", ["404", "5xx"])
def test_rare_responses_are_found_by_a_partial_index(
    as_bob: Client, acme_hook: Hook, typed: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        as_bob.get(RUNS, {"response": typed})

    query = next(q["sql"] for q in captured if q["sql"].startswith('SELECT "scripts_engine_run"'))
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query}".replace("%", "%%"))
        plan = " ".join(row[-1] for row in cursor.fetchall())
    assert "INDEX run_other_than_ok" in plan


def test_runs_are_found_by_a_part_of_their_error(as_bob: Client, acme_hook: Hook) -> None:
    wanted = failed(acme_hook, "attempt to index a nil value (field 'items')")
    failed(acme_hook, "no such order")
    answered(acme_hook, 200)

    response = as_bob.get(RUNS, {"error": " NIL value "})

    assert list(response.context["cl"].result_list) == [wanted]
    assert "Errors are searched in the newest 10,000 failed runs." in text_of(response)


@pytest.mark.parametrize("typed", ["%", "_", "100%_\\", "'", '"'])
def test_signs_of_sql_in_an_error_are_just_text(
    as_bob: Client, acme_hook: Hook, typed: str
) -> None:
    wanted = failed(acme_hook, f"odd {typed} sign")
    failed(acme_hook, "plain")

    assert found(as_bob, error=typed) == [wanted]


@pytest.mark.parametrize("name", ["error", "payload"])
@pytest.mark.parametrize("typed", ["a" * 201, "a\0"])
def test_a_search_that_is_too_long_or_no_text_finds_nothing(
    as_bob: Client, acme_hook: Hook, name: str, typed: str
) -> None:
    failed(acme_hook, "a" * 300, request_body=b"a" * 300 + b"a\0")

    response = as_bob.get(RUNS, {name: typed})

    assert response.status_code == 200
    assert response.context["cl"].result_count == 0
    assert f"By {name} text: " in text_of(response)


def test_errors_older_than_the_newest_failures_are_not_searched(
    as_bob: Client, acme_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "NEWEST_ERRORS", 2)
    failed(acme_hook, "the same", minutes_ago=3)
    second, third = failed(acme_hook, "the same", 2), failed(acme_hook, "the same", 1)
    answered(acme_hook, 200)

    assert set(found(as_bob, error="same")) == {third, second}


def test_other_filters_narrow_the_searched_runs(
    as_bob: Client, acme: Organisation, acme_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "NEWEST_ERRORS", 1)
    other = factories.make_hook(factories.make_script(acme, name="other")).hook
    wanted = failed(acme_hook, "the same", minutes_ago=1)
    failed(other, "the same")

    assert found(as_bob, error="same", script__id__exact=str(acme_hook.script_id)) == [wanted]


def test_runs_are_found_by_bytes_of_their_payload(as_bob: Client, acme_hook: Hook) -> None:
    wanted = factories.make_past_run(
        acme_hook, NOW(), request_body=b'\xff\0{"order": "T\xc3\xa9e"}'
    )
    factories.make_past_run(acme_hook, NOW(), request_body=b'{"order": "t\xc3\xa9e"}')
    factories.make_past_run(acme_hook, NOW())

    response = as_bob.get(RUNS, {"payload": '"Tée"'})

    assert list(response.context["cl"].result_list) == [wanted]
    assert "Payloads are searched in the newest 1,000 runs" in text_of(response)


def test_only_the_first_bytes_of_the_newest_payloads_are_searched(
    as_bob: Client, acme_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "NEWEST_PAYLOADS", 2)
    monkeypatch.setattr(filters, "SEARCHED_BYTES", 5)
    called(acme_hook, b"tea", minutes_ago=3)
    called(acme_hook, b"...tea", minutes_ago=2)
    newest = called(acme_hook, b"..tea", minutes_ago=1)

    assert found(as_bob, payload="tea") == [newest]


def test_searches_combine(as_bob: Client, acme_hook: Hook) -> None:
    wanted = failed(acme_hook, "no tea", request_body=b"tea", response_status=500)
    failed(acme_hook, "no tea", request_body=b"milk", response_status=500)
    failed(acme_hook, "no milk", request_body=b"tea", response_status=500)
    failed(acme_hook, "no tea", request_body=b"tea", response_status=504)

    assert found(as_bob, error="no tea", payload="tea", response="500") == [wanted]


def test_a_search_finds_nothing_of_another_organisation(
    as_bob: Client, as_root: Client, acme_hook: Hook, globex_objects: dict[type, Any]
) -> None:
    run = failed(globex_objects[Hook], "Globex error", request_body=b"Globex", response_status=507)

    assert found(as_root, error="Globex error", payload="Globex", response="507") == [run]
    assert found(as_bob, error="Globex error") == []
    assert found(as_bob, payload="Globex") == []
    assert found(as_bob, response="507") == []


def test_another_organisations_failure_is_no_measure(
    as_bob: Client, as_root: Client, acme_hook: Hook, globex_objects: dict[type, Any]
) -> None:
    run = failed(globex_objects[Hook], "Globex error")
    unknown = as_bob.get(RUNS, {"same_error_as": "9b2f6a0e-8a55-4b6c-9d9e-2f0c9d8f5a11"})

    response = as_bob.get(RUNS, {"same_error_as": str(run.pk)})

    assert found(as_root, same_error_as=str(run.pk)) == [run]
    assert response.context["cl"].result_count == 0
    assert "Globex" not in text_of(response)
    assert "does not exist" in text_of(response)
    assert "does not exist" in text_of(unknown)


@pytest.mark.parametrize("typed", ["1", "\0", "moon", "9" * 5000])
def test_a_failure_with_a_malformed_id_does_not_exist(
    as_bob: Client, acme_hook: Hook, typed: str
) -> None:
    failed(acme_hook, "an error")

    assert found(as_bob, same_error_as=typed) == []


def test_failures_like_another_are_of_its_script(
    as_bob: Client, acme: Organisation, acme_hook: Hook
) -> None:
    other = factories.make_hook(factories.make_script(acme, name="other")).hook
    first, second = failed(acme_hook, "no order 1"), failed(acme_hook, "no order 2")
    failed(other, "no order 3")
    failed(acme_hook, "no tea")

    response = as_bob.get(RUNS, {"same_error_as": str(first.pk)})

    assert set(response.context["cl"].result_list) == {first, second}
    assert "Failures of one script like “no order 1”" in text_of(response)


def test_the_list_shows_the_first_line_of_each_error(as_bob: Client, acme_hook: Hook) -> None:
    failed(acme_hook, "no <order>\nand more\nstack", error_line=3)
    answered(acme_hook, 200)

    text = text_of(as_bob.get(RUNS))

    assert (
        '<span class="mh-run-error" title="no &lt;order&gt;\nand more\nstack">'
        "Line 3: no &lt;order&gt;</span>"
    ) in text
    assert text.count('class="mh-run-error"') == 1


def test_the_list_names_the_line_of_an_error_once(as_bob: Client, acme_hook: Hook) -> None:
    failed(acme_hook, "New order:3: no customer", error_line=3)

    assert ">New order:3: no customer</span>" in text_of(as_bob.get(RUNS))


def test_errors_are_read_of_failed_runs_only(as_bob: Client, acme: Organisation) -> None:
    hook = factories.make_hook(factories.make_script(acme, 'error("no tea")')).hook
    run = run_of(hook)
    delete_script(hook.script)
    Run.objects.bulk_create(factories.past_run(hook, NOW()) for _ in range(3))

    with CaptureQueriesContext(connection) as captured:
        as_bob.get(RUNS)

    (errors,) = [q["sql"] for q in captured if '"error_message"' in q["sql"]]
    assert run.pk.hex in errors.replace("-", "")
    assert "request_body" not in errors
    assert errors.count("'") <= 6


# --- The search field -----------------------------------------------------------------------------


def of_event(hook: Hook, event_id: str, minutes_ago: int = 0) -> Run:
    at = NOW() - timedelta(minutes=minutes_ago)
    return factories.make_past_run(hook, at, event_id=event_id)


def test_a_run_is_found_by_its_event_id(as_bob: Client, acme_hook: Hook) -> None:
    wanted = of_event(acme_hook, "evt_1")
    of_event(acme_hook, "evt_12")

    assert found(as_bob, q=" evt_1 ") == [wanted]


def test_an_event_id_may_look_like_the_id_of_a_run(as_bob: Client, acme_hook: Hook) -> None:
    event_id = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    wanted = of_event(acme_hook, event_id)

    assert found(as_bob, q=event_id) == [wanted]
    assert found(as_bob, q=wanted.pk.hex) == [wanted]


def test_runs_are_found_by_a_part_of_a_recent_error(as_bob: Client, acme_hook: Hook) -> None:
    wanted = failed(acme_hook, "no order 17")
    failed(acme_hook, "no tea")

    assert found(as_bob, q="ORDER 1") == [wanted]


def test_the_search_looks_at_the_newest_runs_only(
    as_bob: Client, acme_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "NEWEST_EVENTS", 2)
    monkeypatch.setattr(filters, "NEWEST_ERRORS", 1)
    of_event(acme_hook, "evt", minutes_ago=5)
    failed(acme_hook, "an evt", minutes_ago=4)
    newest = [failed(acme_hook, "another evt", minutes_ago=2), of_event(acme_hook, "evt", 1)]

    assert found(as_bob, q="evt") == newest[::-1]


@pytest.mark.parametrize("typed", ["a" * 201, "%", "evt_"])
def test_a_search_that_matches_no_event_finds_nothing(
    as_bob: Client, acme_hook: Hook, typed: str
) -> None:
    of_event(acme_hook, "evt_1")

    assert found(as_bob, q=typed) == []


def test_a_viewer_finds_runs_by_their_id_alone(acme: Organisation, acme_hook: Hook) -> None:
    viewer = client_of(acme, Role.VIEWER)
    run = failed(acme_hook, "no tea", event_id="evt_1")

    assert found(viewer, q=run.pk.hex[:12]) == [run]
    assert found(viewer, q="no tea") == []
    assert found(viewer, q="evt_1") == []


def test_the_search_finds_nothing_of_another_organisation(
    as_bob: Client, as_root: Client, acme_hook: Hook, globex_objects: dict[type, Any]
) -> None:
    run = failed(globex_objects[Hook], "Globex error", event_id="evt_1")

    assert found(as_root, q="Globex error") == found(as_root, q="evt_1") == [run]
    assert found(as_bob, q="Globex error") == []
    assert found(as_bob, q="evt_1") == []


# --- One row per piece of work --------------------------------------------------------------------


@pytest.fixture
def tried(acme: Organisation) -> list[Run]:
    """Three attempts at one piece of work, the last of which waits."""
    queue(hook_that(acme, "error('no tea')"), max_attempts=3)
    work_queue()
    make_due()
    work_queue()
    return list(Run.objects.order_by("attempt"))


def test_attempts_are_one_row_with_their_number(as_bob: Client, tried: list[Run]) -> None:
    response = as_bob.get(RUNS)

    assert list(response.context["cl"].result_list) == tried[2:]
    assert response.context["cl"].result_count == 1
    assert f'<a class="text-link" href="{page_of(tried[2])}#attempts">3</a>' in text_of(response)


def test_every_attempt_can_be_listed(as_bob: Client, tried: list[Run]) -> None:
    response = as_bob.get(RUNS, {"attempts": "all"})

    assert list(response.context["cl"].result_list) == tried[::-1]
    assert response.context["cl"].result_count == 3


def test_an_earlier_attempt_is_found_by_its_id(as_bob: Client, tried: list[Run]) -> None:
    assert found(as_bob, q=str(tried[0].pk)) == [tried[0]]


def test_a_failed_attempt_that_was_followed_is_no_failure(as_bob: Client, tried: list[Run]) -> None:
    assert found(as_bob, status__exact="failed") == []
    assert found(as_bob, status__exact="failed", attempts="all") == tried[1::-1]

    make_due()
    work_queue()

    assert found(as_bob, status__exact="failed") == [tried[2]]
    assert found(as_bob, dead_letter="yes") == [tried[2]]


def test_folded_runs_are_counted_and_paged_as_listed(
    as_bob: Client, acme_hook: Hook, settings: Any
) -> None:
    settings.ADMIN_MAX_COUNTED = 60
    runs = [factories.past_run(acme_hook, NOW() - timedelta(minutes=n)) for n in range(58)]
    runs += [
        factories.past_run(acme_hook, NOW(), "failed", attempt=1, error_message="no")
        for _ in range(59)
    ]
    Run.objects.bulk_create(runs)

    first, second = as_bob.get(RUNS).context["cl"], as_bob.get(RUNS, {"p": 2}).context["cl"]

    assert (first.result_count, first.paginator.is_capped) == (58, False)
    assert [len(page.result_list) for page in (first, second)] == [50, 8]


@pytest.mark.parametrize("more", [60, 61])
def test_more_folded_attempts_than_are_counted(
    as_bob: Client, acme_hook: Hook, settings: Any, more: int
) -> None:
    settings.ADMIN_MAX_COUNTED = 60
    Run.objects.bulk_create(
        factories.past_run(acme_hook, NOW(), "failed", attempt=1) for _ in range(more)
    )
    run = answered(acme_hook, 200)

    response = as_bob.get(RUNS)

    assert response.context["cl"].result_count == 1
    assert list(response.context["cl"].result_list) == [run]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans so small a table")
def test_folded_runs_are_counted_on_indexes_alone(as_bob: Client, tried: list[Run]) -> None:
    with CaptureQueriesContext(connection) as captured:
        as_bob.get(RUNS)

    counts = [q["sql"] for q in captured if "COUNT" in q["sql"] and '_run"' in q["sql"]]
    assert len(counts) == 2
    assert "COVERING INDEX run_followed" in plan_of(counts[0])
    assert "COVERING INDEX" in plan_of(counts[1])


def test_attempts_of_another_organisation_stay_its_own(charlie: User, tried: list[Run]) -> None:
    as_charlie = logged_in(charlie)

    assert found(as_charlie) == []
    assert found(as_charlie, attempts="all") == []
    assert found(as_charlie, q=str(tried[0].pk)) == []
