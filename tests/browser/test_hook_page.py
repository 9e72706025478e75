"""Saying who calls a hook, in a real browser, with calls to the running server."""

import json
import re
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook
from hooks.models import RefusedCall
from scripts_engine.models import Run
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.eventually import eventually
from tests.hooks.github import signed

pytestmark = [pytest.mark.browser, in_both_looks]

BODY = json.dumps({"zen": "Keep it logically awesome."}).encode()
SECRET = "It's a secret to everybody"


@pytest.fixture
def issued(bob: User) -> IssuedHook:
    script = factories.make_script(bob.organisations.get(), "return 1", "releases")
    return factories.make_hook(script, "pushes")


@pytest.fixture
def page(admin_browser: AdminBrowser, bob: User, issued: IssuedHook) -> Page:
    admin_browser.enter_as(bob)
    return admin_browser.open(page_of(issued.hook))


def call_as_github(issued: IssuedHook, secret: str) -> int:
    """The status of the answer."""
    request = urllib.request.Request(
        issued.hook.url_with(issued.call_token), BODY, signed(BODY, secret=secret)
    )
    try:
        with urllib.request.urlopen(request) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def is_refusal_noted() -> bool:
    """Calls are noted after their reply was sent."""
    call_notes.write()
    return RefusedCall.objects.exists()


def choose_github(page: Page) -> None:
    page.get_by_role("link", name="Choose the sender").click()
    page.get_by_label("Who calls this hook?").select_option(label="GitHub")
    expect(page.get_by_role("heading", name="At GitHub")).to_be_visible()
    page.get_by_label("Signing secret").fill(SECRET)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#newest-call")).to_have_text("Waiting for the first call.")


def test_the_page_waits_for_the_first_call_and_says_what_came(
    admin_browser: AdminBrowser, page: Page, issued: IssuedHook
) -> None:
    choose_github(page)
    newest = page.locator("#newest-call")

    assert call_as_github(issued, SECRET) == 200
    expect(newest).to_contain_text(re.compile("^Verified at .* UTC, from 127.0.0.1"))
    assert call_as_github(issued, f"{SECRET}\n") == 401
    eventually(is_refusal_noted)
    expect(newest).to_contain_text("white space at its end")
    expect(newest).to_contain_text("Verified at")
    newest.get_by_role("link", name="Show the refused call").click()

    expect(page.get_by_role("heading", name="What is wrong, and what to do")).to_be_visible()
    assert Run.objects.count() == 1
    assert admin_browser.script_errors == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
def test_a_hook_with_everything_set_is_accessible(page: Page, issued: IssuedHook) -> None:
    choose_github(page)
    call_as_github(issued, SECRET)
    call_as_github(issued, "another")
    eventually(is_refusal_noted)
    page.reload()

    assert findings(page) == []
    page.locator("#newest-call").get_by_role("link", name="Show the refused call").click()
    expect(page.get_by_role("heading", name="What is wrong, and what to do")).to_be_visible()
    assert findings(page) == []


def test_settings_show_what_applies_and_keep_what_was_typed(
    page: Page, admin_browser: AdminBrowser, issued: IssuedHook
) -> None:
    admin_browser.open(page_of(issued.hook, "limits"))
    status, burst = (
        page.get_by_label("Status of accepted calls"),
        page.get_by_label("Burst"),
    )
    expect(status).to_be_hidden()
    expect(burst).to_be_hidden()

    page.get_by_label("Reply", exact=True).select_option("accepted")
    status.fill("201")
    page.get_by_label("Reply", exact=True).select_option("")
    expect(status).to_be_hidden()
    page.get_by_label("Reply", exact=True).select_option("accepted")
    page.get_by_label("Calls per minute").fill("60")

    expect(status).to_have_value("201")
    expect(burst).to_be_visible()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
def test_settings_and_the_open_menu_are_accessible(
    page: Page, admin_browser: AdminBrowser, issued: IssuedHook
) -> None:
    page.locator("summary[aria-label=Actions]").click()
    expect(page.get_by_role("link", name="Rotate call token")).to_be_visible()
    assert findings(page) == []

    admin_browser.open(page_of(issued.hook, "limits"))
    page.get_by_label("Reply", exact=True).select_option("accepted")
    assert findings(page) == []
