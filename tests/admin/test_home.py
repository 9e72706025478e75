import json
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from accounts.audit import record
from accounts.flows.api_keys import issue_api_key
from accounts.models import ApiKey, AuthEventKind, Organisation, User
from core.admin.times import until
from core.http.origin import NOWHERE
from hooks.models import Hook
from scripts_engine.flows.alert_script import set_alert_script
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script
from scripts_engine.runs.spec import NOBODY
from scripts_engine.sandbox import Job, Limits, SandboxPool, SandboxUnavailable
from tests import factories
from tests.admin.pages import list_of, page_of, run_of, text_of

HOME = reverse("admin:index")
# By its name: the package has a function of the same name.
sandbox = import_module("config.admin.home.sandbox")


@pytest.fixture(autouse=True)
def _nothing_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an answer that came too late for one test would stand on the page of the next."""
    monkeypatch.setattr(sandbox._health, "_attempt", None)


def past_run(hook: Hook, status: str = "succeeded", hours: float = 0, **fields: Any) -> Run:
    at = timezone.now() - timedelta(hours=hours, seconds=1)
    return factories.make_past_run(hook, at, status, **fields)


def home_of(client: Client) -> Any:
    """What the page's template is given."""
    return client.get(HOME).context["home"]


def test_a_superuser_is_asked_to_add_an_organisation_first(as_root: Client) -> None:
    assert list_of(Organisation, "add") in text_of(as_root.get(HOME))


def test_then_to_write_a_script(as_bob: Client) -> None:
    text = text_of(as_bob.get(HOME))

    assert "No scripts yet." in text
    assert list_of(Script, "add") in text


def test_then_to_issue_a_hook(as_bob: Client, acme_script: Script) -> None:
    text = text_of(as_bob.get(HOME))

    assert "No script has a hook." in text
    assert list_of(Hook, "add") in text


def test_then_to_call_it(as_bob: Client, acme_hook: Hook) -> None:
    assert "No recorded runs" in text_of(as_bob.get(HOME))


def test_then_to_choose_who_is_told_when_something_breaks(
    as_bob: Client, acme: Organisation, acme_hook: Hook
) -> None:
    page = as_bob.get(HOME).content.decode()
    set_alert_script(acme, acme_hook.script)
    with_script = as_bob.get(HOME).content.decode()
    update_script(acme_hook.script, author=NOBODY, is_enabled=False)
    while_disabled = as_bob.get(HOME).content.decode()
    Organisation.objects.update(failure_mails=True)
    with_mails = as_bob.get(HOME).content.decode()

    advice = "Nobody is told when a script fails."
    assert f'href="/admin/accounts/organisation/{acme.pk}/change/#id_alert_script"' in page
    assert [advice in each for each in (page, with_script, while_disabled, with_mails)] == [
        True,
        False,
        True,
        False,
    ]


def test_and_then_it_shows_the_latest_runs(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    assert page_of(run) in text_of(as_bob.get(HOME))


def test_staff_without_an_organisation_are_told_whom_to_ask(
    as_erin: Client, acme_hook: Hook
) -> None:
    response = as_erin.get(HOME)

    text = text_of(response)
    assert response.status_code == 200
    assert "You have no role in any organisation" in text
    assert list_of(Script) not in text
    assert list_of(User) not in text


def test_the_sidebar_lists_only_permitted_pages(as_bob: Client, as_root: Client) -> None:
    tasks = reverse("admin:jobs_message_changelist")

    assert list_of(Script) in text_of(as_bob.get(HOME))
    assert tasks not in text_of(as_bob.get(HOME))
    assert tasks in text_of(as_root.get(HOME))


def test_runs_of_a_day_are_counted_by_outcome(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook, hours=1)
    past_run(acme_hook, "failed", hours=2)
    past_run(acme_hook, "failed", hours=3)
    past_run(acme_hook, "timed-out", hours=4)
    past_run(acme_hook, "failed", hours=25)

    outcomes = home_of(as_bob).runs.outcomes

    assert [(outcome.title, outcome.count) for outcome in outcomes.outcomes] == [
        ("Succeeded", 1),
        ("Failed", 2),
        ("Timed out", 1),
        ("Out of memory", 0),
        ("Lost", 0),
    ]
    assert (outcomes.total, outcomes.not_succeeded) == (4, 3)


def test_the_chart_has_the_counts_of_each_hour(as_bob: Client, acme_hook: Hook) -> None:
    run = past_run(acme_hook, "failed", hours=5)

    chart = json.loads(home_of(as_bob).runs.outcomes.chart)

    failed = next(bars for bars in chart["datasets"] if bars["label"] == "Failed")
    bars = dict(zip(chart["labels"], failed["data"], strict=True))
    assert sum(bars.values()) == 1
    assert bars[f"{run.started_at:%H}:00"] == 1


def test_the_chart_has_a_text_alternative(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook)
    past_run(acme_hook, "failed")

    text = text_of(as_bob.get(HOME))

    assert "2 in all, 1 succeeded, 1 failed, 0 timed out, 0 out of memory, 0 lost." in text
    assert "<caption>Runs of the last 24 hours" in text


def test_each_outcome_leads_to_its_runs(as_bob: Client, acme_hook: Hook) -> None:
    failed, succeeded = past_run(acme_hook, "failed"), past_run(acme_hook)
    outcomes = {outcome.title: outcome for outcome in home_of(as_bob).runs.outcomes.outcomes}

    listed = text_of(as_bob.get(outcomes["Failed"].url))

    assert page_of(failed) in listed
    assert page_of(succeeded) not in listed


def test_the_percentiles_are_on_the_page(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook, duration_ms=12.5)
    past_run(acme_hook, hours=2, duration_ms=812.5)

    durations = home_of(as_bob).runs.outcomes.durations

    assert (durations.p50_ms, durations.p95_ms) == (12.5, 812.5)
    assert "812.5" in text_of(as_bob.get(HOME))


def test_each_error_of_a_script_has_a_row(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook, "failed", hours=2, error_message="an old error")
    last = past_run(acme_hook, "failed", error_message="no <customer>\nand more", error_line=3)

    text = text_of(as_bob.get(HOME))

    assert "Line 3: no &lt;customer&gt;</code>" in text
    assert "an old error" in text
    assert page_of(last) in text
    assert page_of(acme_hook.script) in text
    assert text.count("1 failure<") == 2


def test_a_failure_can_be_opened_in_try_it(as_bob: Client, acme_hook: Hook) -> None:
    run = past_run(acme_hook, "failed", error_message="no tea")

    (row,) = home_of(as_bob).runs.failures.rows

    assert row.try_url == f"{page_of(acme_hook.script)}?run={run.pk}"
    assert row.newer_version == ""
    assert f'href="{row.try_url}">Open in Try it' in text_of(as_bob.get(HOME))


def test_a_failure_whose_payload_was_removed_cannot_be_tried(
    as_bob: Client, acme_hook: Hook
) -> None:
    past_run(acme_hook, "failed", error_message="no tea", payload_removed_at=timezone.now())

    text = text_of(as_bob.get(HOME))

    assert "no tea" in text
    assert "Open in Try it" not in text


def test_a_version_newer_than_the_last_failure_is_mentioned(
    as_bob: Client, acme_hook: Hook
) -> None:
    old = past_run(acme_hook, "failed", error_message="no tea")
    update_script(acme_hook.script, source="return 2", author=NOBODY)

    told = "Version 2 published since the last failure"
    before = text_of(as_bob.get(HOME))
    past_run(Hook.objects.get(), "failed", error_message="no tea")
    after = home_of(as_bob).runs.failures.rows

    assert told in before
    assert page_of(old) in before
    assert [(row.failures, row.newer_version) for row in after] == [(2, "")]


def test_the_failures_of_a_script_lead_to_them(as_bob: Client, acme_hook: Hook) -> None:
    failed, succeeded = past_run(acme_hook, "failed"), past_run(acme_hook)
    (row,) = home_of(as_bob).runs.failures.rows

    listed = text_of(as_bob.get(row.failures_url))

    assert page_of(failed) in listed
    assert page_of(succeeded) not in listed


def test_failure_counts_link_to_their_runs(as_bob: Client, acme_hook: Hook) -> None:
    slow, succeeded = past_run(acme_hook, "timed-out"), past_run(acme_hook)
    address = home_of(as_bob).runs.outcomes.bad_runs

    listed = text_of(as_bob.get(address))

    assert f'<a href="{escape(address)}">1</a>' in text_of(as_bob.get(HOME))
    assert page_of(slow) in listed
    assert page_of(succeeded) not in listed


def test_large_numbers_are_grouped(as_bob: Client, acme_hook: Hook) -> None:
    at = timezone.now() - timedelta(hours=1)
    Run.objects.bulk_create(factories.past_run(acme_hook, at) for _ in range(1234))

    text = text_of(as_bob.get(HOME))

    assert ">1,234</a>" in text
    assert "1,234 in all, 1,234 succeeded" in text


def test_a_run_that_said_nothing_shows_how_it_ended(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook, "out-of-memory")

    (row,) = home_of(as_bob).runs.failures.rows

    assert row.error == "Out of memory"


def test_keys_that_expire_soon_are_named(as_bob: Client, acme: Organisation) -> None:
    now = timezone.now()
    issue_api_key(acme, name="ends in March", expires_at=now + timedelta(days=40))
    issue_api_key(acme, name="ends next week", expires_at=now + timedelta(days=9))
    issue_api_key(acme, name="ends tomorrow", expires_at=now + timedelta(days=1, hours=1))
    revoked = issue_api_key(acme, name="revoked", expires_at=now + timedelta(days=1)).api_key
    ApiKey.objects.filter(pk=revoked.pk).update(revoked_at=now)

    keys = home_of(as_bob).keys

    assert [(key.name, until(key.at), key.is_urgent) for key in keys.keys] == [
        ("ends tomorrow", "in 1\N{NO-BREAK SPACE}day", True),
        ("ends next week", "in 1\N{NO-BREAK SPACE}week", False),
    ]


def test_sign_ins_are_sessions_and_logins(as_bob: Client, acme: Organisation) -> None:
    factories.open_session(factories.api_key_login(factories.make_api_key(acme)))
    factories.post_session(as_bob, {"uid": "mhk_x", "password": "x", "credential": "ApiKey"})
    record(AuthEventKind.ADMIN_LOGIN, NOWHERE, organisation=acme, email="bob@example.com")

    sign_ins = home_of(as_bob).sign_ins

    assert [(sign_in.who, sign_in.what) for sign_in in sign_ins] == [
        ("bob@example.com", "Administrator logged in"),
        (acme.api_keys.get().name, "Session opened"),
    ]


def test_nothing_of_another_organisation_is_shown(
    as_bob: Client, as_root: Client, acme_hook: Hook, globex_objects: dict[type, Any]
) -> None:
    soon = timezone.now() + timedelta(days=2)
    issue_api_key(globex_objects[Organisation], name="Globex expiring", expires_at=soon)
    past_run(globex_objects[Hook], "failed", error_message="Globex error")
    past_run(acme_hook)

    of_bob, of_root = text_of(as_bob.get(HOME)), text_of(as_root.get(HOME))

    assert home_of(as_bob).runs.outcomes.total == 1
    assert home_of(as_root).runs.outcomes.total == 5
    assert "Globex error" in of_root
    assert home_of(as_bob).runs.failures.rows == []
    assert "Globex expiring" in of_root
    assert globex_objects[ApiKey].name in of_root
    assert "globex" not in of_bob.lower()


def test_a_day_without_runs_shows_an_empty_state(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook, hours=30)

    text = text_of(as_bob.get(HOME))

    assert "No runs in the last 24 hours" in text
    assert "<canvas" not in text
    assert "No failed runs" in text
    assert "No active API key" in text
    assert "No recorded logins" in text


def test_a_key_that_lasts_is_no_call_to_issue_one(as_bob: Client, acme: Organisation) -> None:
    factories.make_api_key(acme)

    text = text_of(as_bob.get(HOME))

    assert "None within 30 days" in text
    assert "No active API key" not in text


def test_the_sandbox_says_that_it_is_healthy(as_bob: Client, as_root: Client) -> None:
    of_bob, of_root = home_of(as_bob).sandbox, home_of(as_root).sandbox

    assert (of_bob.title, of_bob.layers, of_bob.pool) == ("Healthy", (), None)
    assert of_root.title == "Healthy"
    assert "seccomp" in {layer.name for layer in of_root.layers}
    assert of_root.pool.slots > 0


def test_the_sandbox_says_that_it_is_down(as_bob: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise SandboxUnavailable("gone")

    monkeypatch.setattr(SandboxPool, "check_syntax", refuse)

    assert home_of(as_bob).sandbox.title == "Down"


def test_a_sandbox_that_does_not_answer_holds_nothing_up(
    as_bob: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = Event()
    monkeypatch.setattr(SandboxPool, "check_syntax", lambda *arguments: is_over.wait(60))

    told = home_of(as_bob).sandbox
    # Whoever waited for the answer would have found a sandbox that is well.
    is_over.set()

    assert told.title == "Slow"


def test_a_late_answer_of_the_sandbox_is_on_the_next_page(
    as_bob: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer, has_answered = Event(), Event()

    def refuse_at_last(*arguments: object) -> None:
        may_answer.wait(30)
        has_answered.set()
        raise SandboxUnavailable("gone")

    monkeypatch.setattr(SandboxPool, "check_syntax", refuse_at_last)
    first = home_of(as_bob).sandbox
    may_answer.set()
    has_answered.wait(30)
    monkeypatch.setattr(SandboxPool, "check_syntax", lambda *arguments: None)

    assert first.title == "Slow"
    assert home_of(as_bob).sandbox.title == "Down"
    assert home_of(as_bob).sandbox.title == "Healthy"


class Standstill:
    """Holds the run that calls it, until it is let go."""

    def __init__(self) -> None:
        self.is_entered, self.is_over = Event(), Event()

    def __call__(self, name: str, args: list[Any], *, deadline: float, note: object) -> None:
        self.is_entered.set()
        self.is_over.wait(30)


@pytest.fixture
def full_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxPool]:
    """This process's pool, with a script in its only slot."""
    pool, standstill = SandboxPool(size=1), Standstill()
    monkeypatch.setattr(sandbox, "sandbox_pool", lambda: pool)
    job = Job(source=b"store.get('a')", chunk_name="slow", limits=Limits())
    script = Thread(target=pool.run, args=("acme", job, standstill))
    script.start()
    assert standstill.is_entered.wait(30)
    yield pool
    standstill.is_over.set()
    script.join()
    pool.close()


def test_a_sandbox_without_a_free_slot_says_that_it_is_busy(
    as_bob: Client, as_root: Client, full_pool: SandboxPool
) -> None:
    of_bob, of_root = home_of(as_bob).sandbox, home_of(as_root).sandbox

    assert (of_bob.title, of_root.title) == ("Busy", "Busy")
    assert "1 of 1 slots" in text_of(as_root.get(HOME))


def test_a_sandbox_that_breaks_is_down_and_logged_once(
    as_bob: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*arguments: object) -> None:
        raise OSError("no more file descriptors")

    monkeypatch.setattr(SandboxPool, "check_syntax", break_down)

    response = as_bob.get(HOME)

    assert response.status_code == 200
    assert response.context["home"].sandbox.title == "Down"
    (told,) = [record for record in caplog.records if record.exc_info]
    assert "no more file descriptors" in caplog.text
    assert told.levelname == "ERROR"


def test_many_runs_take_no_more_queries(as_bob: Client, acme: Organisation) -> None:
    first, second = (
        factories.make_hook(factories.make_script(acme, name=name)).hook for name in "ab"
    )
    past_run(first, "failed")
    as_bob.get(HOME)
    with CaptureQueriesContext(connection) as few:
        as_bob.get(HOME)
    for number in range(12):
        past_run(first, "failed", hours=number)
        past_run(second, "timed-out", hours=number)

    with CaptureQueriesContext(connection) as many:
        as_bob.get(HOME)

    assert len(many) == len(few) <= 26


def test_successful_runs_are_counted_without_being_read(as_bob: Client, acme_hook: Hook) -> None:
    past_run(acme_hook)

    with CaptureQueriesContext(connection) as captured:
        as_bob.get(HOME)

    counting = next(query["sql"] for query in captured if "UNION ALL" in query["sql"])
    assert '"scripts_engine_run"."id" >= ' in counting
    assert "started_at" not in counting
