"""From the script's page to GitHub's first verified call, in a real browser."""

import json
import re
import urllib.request

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from hooks.models import Hook
from scripts_engine.models import Run, Script
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.hooks.github import signed

pytestmark = [pytest.mark.browser, in_both_looks]

BODY = json.dumps({"zen": "Approachable is better than simple."}).encode()
COUNT_CLICKS = """
addEventListener("click", (event) => {
    if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true);
"""
MOST_CLICKS = 6


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 'done'", "releases")


def copied(page: Page, name: str) -> str:
    button = page.get_by_role("button", name=name, exact=True)
    button.click()
    expect(button).to_have_text("Copied")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def answer_to_github(url: str, secret: str) -> bytes:
    request = urllib.request.Request(url, BODY, signed(BODY, secret=secret))
    with urllib.request.urlopen(request) as answer:
        content: bytes = answer.read()
        return content


def test_a_github_push_is_verified_and_answered_in_six_clicks(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    page = admin_browser.enter_as(bob)
    page.add_init_script(COUNT_CLICKS)
    admin_browser.open(page_of(script))

    page.locator("section").filter(has_text="No hooks.").get_by_role("link").click()
    page.get_by_role("radio", name="GitHub", exact=True).click()
    page.get_by_role("button", name="Create hook").click()
    newest = page.locator("#newest-call")
    expect(newest).to_have_text("Waiting for the first call.")
    url, secret = copied(page, "Copy URL"), copied(page, "Copy Signing secret")

    assert answer_to_github(url, secret) == b"done"
    expect(newest).to_contain_text(re.compile("^Verified at .* UTC, from 127.0.0.1"))
    assert page.locator("#url").inner_text() == url
    # An event of the keyboard or of a label may count twice, never too little.
    assert 5 <= int(page.evaluate("sessionStorage.clicks")) <= MOST_CLICKS
    assert Run.objects.get().verified == "signed"
    assert admin_browser.script_errors == []
    assert admin_browser.foreign_requests == []


def test_a_sender_is_found_and_chosen_by_keyboard(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    page = admin_browser.enter_as(bob)
    admin_browser.open(list_of(Hook, "add") + f"?script={script.pk}")

    page.get_by_label("Find a sender").focus()
    page.keyboard.type("stri")
    expect(page.locator(".mh-sender-tile:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name="Stripe")).to_be_checked()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="At Stripe")).to_be_visible()
    expect(page.get_by_label("Signing secret of the sender")).to_be_visible()
    assert Hook.objects.get().sender == "stripe"


def test_the_senders_secret_is_set_beside_the_url(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    page = admin_browser.enter_as(bob)
    admin_browser.open(list_of(Hook, "add") + f"?script={script.pk}")
    page.get_by_role("radio", name="Stripe").click()
    page.get_by_role("button", name="Create hook").click()
    url = page.locator("#url").inner_text()

    page.get_by_label("Signing secret of the sender").fill("whsec_of_stripe")
    page.get_by_role("button", name="Set secret").click()

    expect(page.get_by_text("The signing secret is set.")).to_be_visible()
    assert page.locator("#url").inner_text() == url


def test_options_are_asked_for_an_unlisted_sender_only(
    admin_browser: AdminBrowser, bob: User, script: Script
) -> None:
    page = admin_browser.enter_as(bob)
    admin_browser.open(list_of(Hook, "add") + f"?script={script.pk}")
    options = page.get_by_role("heading", name="How the sender signs")

    page.get_by_role("radio", name="GitHub", exact=True).click()
    expect(options).to_be_hidden()
    page.get_by_role("radio", name="Not listed").click()

    expect(options).to_be_visible()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
def test_both_pages_are_accessible(admin_browser: AdminBrowser, bob: User, script: Script) -> None:
    page = admin_browser.enter_as(bob)
    admin_browser.open(list_of(Hook, "add"))
    page.get_by_role("radio", name="Not listed").click()
    assert findings(page) == []

    admin_browser.open(list_of(Hook, "add") + f"?script={script.pk}")
    page.get_by_role("radio", name="GitHub", exact=True).click()
    page.get_by_role("button", name="Create hook").click()
    expect(page.locator("#signing-secret")).to_be_visible()
    assert findings(page) == []
