"""Run pages, and the commands on hook and key pages, in a real browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from hooks.models import Hook
from scripts_engine.models import Run
from tests import factories
from tests.admin.pages import page_of, run_of
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.working_queue import queue, work_all

pytestmark = [pytest.mark.browser, in_both_looks]

SOURCE = """log.info("called")
store.set("last", 1)
pcall(http.get, "http://10.0.0.1/" .. ("x"):rep(200))
return params.get("body")"""
PAYLOAD = '{"order": {"id": 9007199254740993, "id": 7}, "note": "a <b> c"}'


@pytest.fixture
def hook(bob: User) -> Hook:
    script = factories.make_script(bob.organisations.get(), SOURCE, "orders")
    return factories.make_hook(script).hook


@pytest.fixture
def run(hook: Hook) -> Run:
    headers = (("Content-Type", "application/json"), ("Authorization", "Basic c2VjcmV0"))
    return run_of(hook, body=PAYLOAD.encode(), headers=headers)


def is_wider_than_the_screen(page: Page) -> bool:
    wider: bool = page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return wider


def clipboard(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def box(page: Page, button: str) -> Any:
    """Where the button or link of that name stands."""
    return page.locator("#submit-row").get_by_text(button, exact=True).bounding_box()


def assert_nothing_went_wrong(admin_browser: AdminBrowser) -> None:
    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []


def test_a_payload_folds_by_keyboard_and_is_copied_unchanged(
    admin_browser: AdminBrowser, bob: User, run: Run
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))
    body = page.get_by_role("group", name="Request body")
    number = body.get_by_text("9007199254740993", exact=True)
    raw = body.get_by_text(PAYLOAD, exact=True)
    expect(number).to_be_visible()
    expect(raw).to_be_hidden()

    body.locator("summary").nth(1).focus()
    page.keyboard.press("Enter")
    expect(number).to_be_hidden()
    expect(body.get_by_text('"a <b> c"', exact=True)).to_be_visible()

    body.get_by_role("radio", name="Tree").focus()
    page.keyboard.press("ArrowRight")
    expect(raw).to_be_visible()
    expect(body.get_by_text('"a <b> c"', exact=True)).to_be_hidden()
    expect(page.get_by_role("radiogroup", name="Show the reply body")).to_be_visible()

    copy = body.get_by_role("button", name="Copy request body")
    copy.click()
    expect(copy).to_have_text("Copied")
    expect(page.get_by_role("status").filter(has_text="Copied")).to_have_count(1)
    expect(copy).to_be_focused()
    assert clipboard(page) == PAYLOAD
    assert_nothing_went_wrong(admin_browser)


EXACT = "\n\r\n a\tb \r&#13;<b>&amp;\n\n"


def test_the_clipboard_gets_the_exact_bytes(
    admin_browser: AdminBrowser, bob: User, hook: Hook
) -> None:
    run = run_of(hook, body=EXACT.encode())
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))

    page.get_by_role("button", name="Copy request body").click()
    expect(page.get_by_role("button", name="Copy request body")).to_have_text("Copied")

    assert clipboard(page).encode() == EXACT.encode()
    assert_nothing_went_wrong(admin_browser)


def test_copying_works_without_the_clipboard_api(
    admin_browser: AdminBrowser, bob: User, hook: Hook
) -> None:
    run = run_of(hook, body=EXACT.encode())
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))
    page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject())")

    page.get_by_role("button", name="Copy request body").click()
    expect(page.get_by_role("button", name="Copy request body")).to_have_text("Copied")

    assert clipboard(page).encode() == EXACT.encode()
    assert_nothing_went_wrong(admin_browser)


def test_a_call_is_copied_as_curl(admin_browser: AdminBrowser, bob: User, run: Run) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))
    button = page.get_by_role("button", name="Copy as curl")

    button.click()

    expect(button).to_have_text("Copied")
    assert clipboard(page).startswith(f"curl -sS '{Hook.objects.get().url}?")
    assert "-H 'Authorization: <not kept>'" in clipboard(page)
    expect(button).to_have_text("Copy as curl", timeout=10_000)
    page.get_by_text("Show as curl").click()
    expect(page.locator("#request-curl")).to_be_visible()
    assert not is_wider_than_the_screen(page)
    assert_nothing_went_wrong(admin_browser)


def test_replaying_leads_to_the_new_run(admin_browser: AdminBrowser, bob: User, run: Run) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))

    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("Replayed the payload")).to_be_visible()

    new = Run.objects.exclude(pk=run.pk).get()
    assert page.url.endswith(page_of(new))
    assert bytes(new.request_body) == PAYLOAD.encode()
    expect(page.get_by_text("Omitted, because not stored: Authorization.")).to_be_visible()
    page.get_by_role("link", name="Older run").click()
    page.wait_for_url(f"**{page_of(run)}")
    page.get_by_role("link", name="Newer run").click()
    page.wait_for_url(f"**{page_of(new)}")
    assert Run.objects.count() == 2
    assert_nothing_went_wrong(admin_browser)


def test_the_timeline_is_drawn_within_the_screen(
    admin_browser: AdminBrowser, bob: User, run: Run
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))
    timeline = page.get_by_role("region", name="Timeline")
    bars = timeline.locator("rect")

    expect(timeline.get_by_text("store.set last → stored 1 byte", exact=True)).to_be_visible()
    expect(timeline.get_by_text("its address is not public")).to_be_visible()
    expect(bars).to_have_count(4)
    expect(timeline.locator(".mh-tick")).to_have_count(1)
    ran, call = bars.nth(1).bounding_box(), bars.nth(2).bounding_box()
    assert ran is not None
    assert call is not None
    assert call["width"] > 0
    assert ran["x"] <= call["x"]
    assert call["x"] + call["width"] <= ran["x"] + ran["width"] + 1
    assert not is_wider_than_the_screen(page)
    assert_nothing_went_wrong(admin_browser)


def test_a_hooks_page_gives_commands_to_copy_and_saves_before_it_deletes(
    admin_browser: AdminBrowser, bob: User, hook: Hook
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(hook))

    page.get_by_role("button", name="Copy Call with POST").click()
    expect(page.get_by_role("button", name="Copy Call with POST")).to_have_text("Copied")
    assert clipboard(page).startswith(f"curl -sS '{hook.url}' \\\n  -H ")
    assert not is_wider_than_the_screen(page)

    save, delete = box(page, "Save"), box(page, "Delete hook")
    is_narrow = page.evaluate("innerWidth") < 1024
    assert (save["y"] < delete["y"]) if is_narrow else (delete["x"] < save["x"])
    assert_nothing_went_wrong(admin_browser)


def test_a_keys_page_gives_a_first_query_to_copy(admin_browser: AdminBrowser, bob: User) -> None:
    api_key = factories.make_api_key(bob.organisations.get()).api_key
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(api_key))

    page.get_by_role("button", name=re.compile("Copy .*first query")).click()
    expect(page.get_by_role("button", name=re.compile("first query"))).to_have_text("Copied")
    assert clipboard(page).startswith(f"TOKEN=$(curl -sS {admin_browser.address}/session \\\n")
    assert not is_wider_than_the_screen(page)
    assert_nothing_went_wrong(admin_browser)


def test_a_queued_run_shows_its_outcome_by_itself(
    admin_browser: AdminBrowser, bob: User, hook: Hook
) -> None:
    run = queue(hook)
    admin_browser.enter_as(bob)
    page = admin_browser.open(page_of(run))
    expect(page.get_by_role("button", name="Remove from queue")).to_be_visible()

    work_all()

    expect(page.locator(".mh-run-facts")).to_contain_text("Succeeded", timeout=10_000)
    expect(page.get_by_role("button", name="Remove from queue")).to_have_count(0)
    expect(page.locator("[data-live]")).to_have_count(0)
    assert admin_browser.script_errors == []
