"""Replaying dead letters together and watching them, in a real browser."""

import pytest
from playwright.sync_api import expect

from accounts.models import User
from core.admin.links import list_of
from jobs.models import QueueEntry
from scripts_engine.models import Run
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.factories import hook_that
from tests.working_queue import queue, work_all, work_queue

pytestmark = [pytest.mark.browser, in_both_looks]
SOURCE = """
if params.get("trigger") ~= "replay" or params.get("body") == "1" then error("no stock") end
"""


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
def test_dead_letters_are_replayed_and_followed_until_the_end(
    admin_browser: AdminBrowser, bob: User
) -> None:
    hook = hook_that(bob.organisations.get(), SOURCE)
    for number in range(6):
        run = queue(hook, max_attempts=1)
        Run.objects.filter(pk=run.pk).update(request_body=str(number).encode())
    work_all()
    admin_browser.enter_as(bob)

    page = admin_browser.open(list_of(Run, dead_letter="yes"))
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("replay_selected")
    page.get_by_role("button", name="Run").click()

    text = page.get_by_role("status")
    expect(text).to_have_text("6 replays: 6 to go.")
    work_queue(2)
    expect(text).to_have_text("6 replays: 1 succeeded, 5 to go.")
    assert findings(page) == []
    work_all()
    expect(text).to_have_text("6 replays: 5 succeeded, 1 failed for good.")
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuenow", "6")
    widths = [part.get_attribute("width") for part in bar.locator("rect").all()]
    assert widths == ["5", "1", "0"]
    page.get_by_role("link", name="Show dead letters").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    assert admin_browser.script_errors == admin_browser.failures == []


def test_the_rows_of_the_queue_update_by_themselves(admin_browser: AdminBrowser, bob: User) -> None:
    hook = hook_that(bob.organisations.get(), "return 1")
    admin_browser.enter_as(bob)
    page = admin_browser.open(list_of(QueueEntry))
    rows = page.locator("#result_list tbody tr")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()

    first = queue(hook)
    queue(hook)
    expect(rows).to_have_count(2, timeout=10_000)
    expect(page.get_by_text("2 queue entries")).to_be_visible()
    page.locator("#action-toggle").check()
    expect(page.locator("input.action-select:checked")).to_have_count(2)
    page.locator("#action-toggle").uncheck()
    page.locator(f"input.action-select[value='{first.pk}']").check()
    page.locator("select[name=action]").select_option("cancel_selected")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("Cancelled 1 run.")).to_be_visible()
    expect(rows).to_have_count(1)
    work_all()

    expect(page.get_by_text("Nothing waits.")).to_be_visible(timeout=15_000)
    expect(rows).to_have_count(0)
    assert admin_browser.script_errors == admin_browser.failures == []


def test_selected_rows_of_the_queue_stay(admin_browser: AdminBrowser, bob: User) -> None:
    run = queue(hook_that(bob.organisations.get(), "return 1"))
    admin_browser.enter_as(bob)
    page = admin_browser.open(list_of(QueueEntry))
    box = page.locator(f"input.action-select[value='{run.pk}']")
    box.check()
    work_all()

    expect(page.locator("#queue-shares")).not_to_contain_text("Acme", timeout=10_000)
    expect(box).to_be_checked()
    box.uncheck()

    expect(page.get_by_text("Nothing waits.")).to_be_visible(timeout=15_000)


def test_all_dead_letters_of_an_error_are_replayed(admin_browser: AdminBrowser, bob: User) -> None:
    hook = hook_that(bob.organisations.get(), SOURCE)
    for _ in range(3):
        queue(hook, max_attempts=1)
    work_all()
    admin_browser.enter_as(bob)
    page = admin_browser.open(list_of(Run, dead_letter="yes"))

    page.get_by_role("link", name="Replay all").click()
    expect(page.get_by_text("Replay 3 dead letters")).to_be_visible()
    assert not AXE.exists() or findings(page) == []
    page.get_by_role("button", name="Replay all").click()
    expect(page.get_by_role("status")).to_have_text("3 replays: 3 to go.")
    work_all()
    expect(page.get_by_role("status")).to_have_text("3 replays: 3 succeeded.")
    page.get_by_role("link", name="Show dead letters").click()
    expect(page.get_by_role("heading", name="No dead letters")).to_be_visible()
    assert admin_browser.script_errors == admin_browser.failures == []
