"""Replaying dead letters together and watching them, in a real browser."""

import pytest
from playwright.sync_api import expect

from accounts.models import User
from core.admin.links import list_of
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
