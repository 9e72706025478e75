"""Making a schedule and reading its ticks, in a real browser."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from jobs.models import QueueEntry, Schedule
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.models import Run, Script
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks

pytestmark = [pytest.mark.browser, in_both_looks]
needs_axe = pytest.mark.skipif(
    not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser"
)


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 1", "report")


@pytest.fixture
def ticked(script: Script) -> Schedule:
    """With ticks of every outcome, and a run that outlasts its interval."""
    schedule = create_schedule(script, cron="*/20 * * * *", name="prices", time_zone="Asia/Tokyo")
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    for start in (now - timedelta(hours=30), now - timedelta(hours=2)):
        Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=start)
        run_due_schedules()
        QueueEntry.objects.all().delete()
    Run.objects.update(status="succeeded")
    for _ in range(2):
        Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=timezone.now())
        run_due_schedules()
    QueueEntry.objects.all().delete()
    Run.objects.update(status="succeeded", duration_ms=1_500_000)
    schedule.refresh_from_db()
    return schedule


def test_the_next_ticks_are_shown_as_one_types(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open(f"{list_of(Schedule, 'add')}?script={script.pk}")
    ticks = page.locator("#next-ticks")
    expect(ticks).to_contain_text("Enter five fields above to see the next runs.")

    page.get_by_role("button", name="Weekdays").click()
    expect(page.get_by_label("Cron")).to_have_value("0 6 * * MON-FRI")
    expect(ticks).to_contain_text("At 06:00 on Monday through Friday (UTC)")
    page.get_by_label("Cron").fill("")

    page.get_by_label("Cron").press_sequentially("0 6 * *")
    expect(ticks).to_contain_text("This has 4.")
    page.get_by_label("Cron").press_sequentially(" mon-fri")
    expect(ticks.locator("li")).to_have_count(5)
    expect(ticks.locator("li").first).to_have_text(re.compile(r"\d{4}, 06:00 UTC$"))
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    expect(ticks.locator("li").first).to_have_text(re.compile(r"06:00 JST \(21:00 UTC\)$"))

    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    schedule = Schedule.objects.get()
    assert (schedule.cron, schedule.time_zone) == ("0 6 * * MON-FRI", "Asia/Tokyo")
    assert admin_browser.script_errors == admin_browser.failures == []


@needs_axe
def test_forms_lists_and_ticks_are_accessible(
    admin_browser: AdminBrowser, bob: User, ticked: Schedule
) -> None:
    admin_browser.enter_as(bob)
    page: Page = admin_browser.open(list_of(Schedule, "add"))
    assert findings(page) == []
    admin_browser.open(list_of(Schedule))
    assert findings(page) == []
    page.get_by_role("link", name="prices").click()
    expect(page.get_by_text("Runs outlast their interval")).to_be_visible()
    expect(page.locator("#next-ticks li")).to_have_count(5)
    assert findings(page) == []

    newest = page.get_by_role("link", name=re.compile(": ran, run succeeded$")).first
    newest.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/scripts_engine/run/**")


def test_run_now_queues_a_run(admin_browser: AdminBrowser, bob: User, ticked: Schedule) -> None:
    before = Run.objects.count()
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(ticked, "run_now"))
    expect(page.get_by_role("heading", name="Run now")).to_be_visible()
    assert Run.objects.count() == before
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url("**/scripts_engine/run/**")
    assert Run.objects.count() == before + 1
