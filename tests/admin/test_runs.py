import re
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation
from hooks.models import Hook
from scripts_engine.admin.runs.bodies import body_of
from scripts_engine.admin.runs.presentation import source_around
from scripts_engine.models import Run
from tests import factories
from tests.admin.pages import list_of, page_of, run_of, text_of
from tests.factories import hook_that

pytestmark = pytest.mark.postgresql


def test_the_page_shows_request_and_reply(as_bob: Client, acme: Organisation) -> None:
    source = (
        'log.warn("low stock") return Reply{status=201, headers={["X-Way"]="by Lua"}, body="<b>"}'
    )
    run = run_of(
        hook_that(acme, source),
        body=b'{"id": 7}',
        headers=(("Content-Type", "application/json"), ("Authorization", "Basic c2VjcmV0")),
    )

    text = text_of(as_bob.get(page_of(run)))

    assert "POST ?a=1" in text
    assert "&quot;id&quot;: 7" in text
    assert "application/json" in text
    assert "c2VjcmV0" not in text
    assert "low stock" in text
    assert "201" in text
    assert "by Lua" in text
    assert "&lt;b&gt;" in text
    assert "203.0.113.9" in text


def test_a_scheduled_run_has_no_caller(as_bob: Client, acme_hook: Hook) -> None:
    run = factories.make_past_run(acme_hook, timezone.now(), "queued")
    Run.objects.filter(pk=run.pk).update(
        trigger="schedule", hook_id=None, client_address="203.0.113.9", response_status=202
    )

    text = text_of(as_bob.get(page_of(run)))

    assert "Called from" not in text
    assert "Answered with" not in text
    assert "The script has not run.</p>" in text


def test_a_failed_run_shows_its_line(as_bob: Client, acme: Organisation) -> None:
    run = run_of(hook_that(acme, 'local a = 1\nerror("no such order")\n'))

    text = text_of(as_bob.get(page_of(run)))

    assert "Error in line 2" in text
    assert "no such order" in text
    assert re.search(r'mh-error-line"><span class="mh-line-number">2</span>error', text)
    assert "Failed" in text


def test_binary_bodies_are_shown_in_hexadecimal(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook, body=b"\xff\x00PNG")

    text = text_of(as_bob.get(page_of(run)))

    assert "0000  ff 00 50 4e 47" in text
    assert "..PNG" in text


def test_a_long_body_is_cut() -> None:
    text, binary = body_of(b"a" * 200_000), body_of(b"\xff" * 2000)

    assert (text.is_cut, len(text.text), text.size) == (True, 100_000, 200_000)
    assert (binary.is_cut, binary.text.count("\n")) == (True, 31)


@pytest.mark.parametrize("body", [b"[1,", b"[" * 50_000, b"{}x", b"plain"])
def test_invalid_json_is_shown_unchanged(body: bytes) -> None:
    assert body_of(body).text == body.decode()


def test_large_numbers_in_json_are_shown_unchanged() -> None:
    assert body_of(b'{"n":' + b"9" * 5000 + b"}").text.count("9") == 5000


def test_the_source_around_an_error_is_that_of_the_version_that_ran(acme: Organisation) -> None:
    hook = hook_that(acme, "\n\n\n\nerror('x')\n\n\n\n\n")

    lines = source_around(run_of(hook))

    assert [number for number, _ in lines] == [2, 3, 4, 5, 6, 7, 8]


def test_a_run_is_never_added_changed_or_deleted(as_root: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    assert as_root.post(page_of(run), {"status": "failed"}).status_code == 403
    assert as_root.post(page_of(run, "delete"), {"post": "yes"}).status_code == 403
    assert as_root.get(list_of(Run, "add")).status_code == 403
    assert Run.objects.get().status == "succeeded"


def test_a_run_is_found_by_its_whole_id(as_bob: Client, acme_hook: Hook) -> None:
    first, second = run_of(acme_hook), run_of(acme_hook)

    text = text_of(as_bob.get(list_of(Run), {"q": f" {first.pk} "}))

    assert page_of(first) in text
    assert page_of(second) not in text


@pytest.mark.parametrize("term", ["echo", "0", "9b2f6a0e-8a55-4b6c-9d9e-2f0c9d8f5a11"])
def test_any_other_search_finds_nothing(as_bob: Client, acme_hook: Hook, term: str) -> None:
    run = run_of(acme_hook)

    response = as_bob.get(list_of(Run), {"q": term})

    assert response.status_code == 200
    assert page_of(run) not in text_of(response)


def test_the_filters_narrow_the_list(as_bob: Client, acme: Organisation) -> None:
    good, bad = hook_that(acme, "return 1", "good"), hook_that(acme, "error('x')", "bad")
    succeeded, failed = run_of(good), run_of(bad)

    by_status = text_of(as_bob.get(list_of(Run), {"status__exact": "failed"}))
    by_script = text_of(as_bob.get(list_of(Run), {"script__id__exact": str(good.script_id)}))
    by_hook = text_of(as_bob.get(list_of(Run), {"hook__id__exact": str(bad.pk)}))
    by_trigger = text_of(as_bob.get(list_of(Run), {"trigger__exact": "admin"}))

    assert (page_of(succeeded) in by_status, page_of(failed) in by_status) == (False, True)
    assert (page_of(succeeded) in by_script, page_of(failed) in by_script) == (True, False)
    assert (page_of(succeeded) in by_hook, page_of(failed) in by_hook) == (False, True)
    assert (page_of(succeeded) in by_trigger, page_of(failed) in by_trigger) == (False, False)


def test_the_list_can_be_filtered_by_failure(as_bob: Client, acme_hook: Hook) -> None:
    now = timezone.now()
    succeeded = factories.make_past_run(acme_hook, now)
    failed = factories.make_past_run(acme_hook, now, "failed")
    slow = factories.make_past_run(acme_hook, now, "timed-out")

    text = text_of(as_bob.get(list_of(Run), {"status__exact": "not-succeeded"}))

    assert '<option value="not-succeeded" selected>Any failure</option>' in text
    assert page_of(failed) in text
    assert page_of(slow) in text
    assert page_of(succeeded) not in text


def test_the_list_can_be_filtered_by_start_time(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)
    before = run.started_at - timedelta(seconds=1)
    after = run.started_at + timedelta(seconds=1)

    since, until = typed("from", before), typed("to", after)
    later, earlier = typed("from", after), typed("to", before)

    assert page_of(run) in text_of(as_bob.get(list_of(Run), since | until))
    assert page_of(run) not in text_of(as_bob.get(list_of(Run), later))
    assert page_of(run) not in text_of(as_bob.get(list_of(Run), earlier))


def typed(end: str, moment: datetime) -> dict[str, str]:
    """The filter's two fields."""
    return {
        f"started_at_{end}_0": f"{moment:%Y-%m-%d}",
        f"started_at_{end}_1": f"{moment:%H:%M:%S.%f}",
    }


def test_an_invalid_time_is_ignored(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    response = as_bob.get(list_of(Run), {"started_at_from_0": "yesterday"})

    assert page_of(run) in text_of(response)


def test_the_time_is_found_by_the_primary_key(as_bob: Client, acme_hook: Hook) -> None:
    with CaptureQueriesContext(connection) as captured:
        as_bob.get(list_of(Run), typed("from", timezone.now()))

    about_runs = [q["sql"] for q in captured if 'FROM "scripts_engine_run"' in q["sql"]]
    assert '"scripts_engine_run"."id" >= ' in about_runs[0]


def test_the_list_counts_to_10_000_and_reads_no_payloads(as_bob: Client, acme_hook: Hook) -> None:
    run_of(acme_hook)

    with CaptureQueriesContext(connection) as captured:
        as_bob.get(list_of(Run))

    about_runs = [q["sql"] for q in captured if 'FROM "scripts_engine_run"' in q["sql"]]
    assert len(about_runs) == 3
    followed, counted, listed = about_runs
    assert "LIMIT 10001" in followed
    assert "LIMIT 10001" in counted
    assert "request_body" not in followed + counted + listed
    assert 'ORDER BY "scripts_engine_run"."id" DESC' in listed


def test_a_version_shows_its_source(as_bob: Client, acme_hook: Hook) -> None:
    version = acme_hook.script.current_version

    assert "params.get" in text_of(as_bob.get(page_of(version)))


@pytest.mark.parametrize(
    ("within", "hours", "is_listed"),
    [
        ("1h", 0.9, True),
        ("1h", 1.1, False),
        ("24h", 23, True),
        ("24h", 25, False),
        ("7d", 24 * 6, True),
        ("7d", 24 * 8, False),
        ("", 24 * 8, True),
        ("a fortnight", 24 * 8, True),
    ],
)
def test_the_list_can_be_filtered_by_period(
    as_bob: Client, acme_hook: Hook, within: str, hours: float, is_listed: bool
) -> None:
    run = factories.make_past_run(acme_hook, timezone.now() - timedelta(hours=hours))

    response = as_bob.get(list_of(Run), {"within": within})

    assert response.status_code == 200
    assert (page_of(run) in text_of(response)) is is_listed


def test_filters_combine(as_bob: Client, acme_hook: Hook) -> None:
    now = timezone.now()
    wanted = factories.make_past_run(acme_hook, now - timedelta(hours=2), "timed-out")
    older = factories.make_past_run(acme_hook, now - timedelta(hours=30), "timed-out")
    other = factories.make_past_run(acme_hook, now - timedelta(hours=3), "failed")

    text = text_of(
        as_bob.get(
            list_of(Run),
            {
                "within": "24h",
                "status__exact": "timed-out",
                "script__id__exact": str(acme_hook.script_id),
                "trigger__exact": "hook",
            },
        )
    )

    assert page_of(wanted) in text
    assert page_of(older) not in text
    assert page_of(other) not in text


@pytest.mark.parametrize(
    ("narrowed", "index"),
    [
        ({"status__exact": "failed"}, "run_not_succeeded"),
        ({"status__exact": "not-succeeded"}, "run_not_succeeded"),
        (
            {"status__exact": "not-succeeded", "script__id__exact": "{script}"},
            "run_not_succeeded_script",
        ),
        ({"status__exact": "failed", "script__id__exact": "{script}"}, "run_not_succeeded"),
        ({"status__exact": "failed", "hook__id__exact": "{hook}"}, "run_not_succeeded"),
        ({"trigger__exact": "admin"}, "run_not_by_hook"),
        ({"source": "draft"}, "run_tried"),
    ],
)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans so small a table")
def test_rare_runs_are_found_by_partial_indexes(
    as_bob: Client, acme_hook: Hook, narrowed: dict[str, str], index: str
) -> None:
    typed = {
        name: value.format(script=acme_hook.script_id, hook=acme_hook.pk)
        for name, value in narrowed.items()
    }
    with CaptureQueriesContext(connection) as captured:
        as_bob.get(list_of(Run), typed)

    query = next(q["sql"] for q in captured if q["sql"].startswith('SELECT "scripts_engine_run"'))
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query}".replace("%", "%%"))
        plan = " ".join(row[-1] for row in cursor.fetchall())
    assert f"INDEX {index}" in plan


def test_an_unknown_outcome_or_trigger_lists_nothing(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    assert page_of(run) not in text_of(as_bob.get(list_of(Run), {"status__exact": "fine"}))
    assert page_of(run) not in text_of(as_bob.get(list_of(Run), {"trigger__exact": "moon"}))


def test_root_sees_and_filters_by_organisation(
    as_root: Client, as_bob: Client, acme_hook: Hook, globex: Organisation
) -> None:
    run = run_of(acme_hook)

    listed = as_root.get(list_of(Run))
    of_globex = as_root.get(list_of(Run), {"organisation__id__exact": str(globex.pk)})

    assert "Acme" in text_of(listed)
    assert page_of(run) in text_of(listed)
    assert page_of(run) not in text_of(of_globex)
    assert "organisation" not in as_bob.get(list_of(Run)).context["cl"].list_display


def test_a_list_without_runs_says_what_to_do(as_bob: Client, acme_hook: Hook) -> None:
    nothing_ran = text_of(as_bob.get(list_of(Run)))
    run_of(acme_hook)
    nothing_left = text_of(as_bob.get(list_of(Run), {"status__exact": "failed"}))

    assert "A run appears when a hook is called" in nothing_ran
    assert "A run appears when a hook is called" not in nothing_left
    assert "Clear search and filters" in nothing_left


def test_the_filters_are_labelled_in_plain_words(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(list_of(Run)))

    assert "By outcome" in text
    assert "By start time" in text
    assert "By started at" not in text
