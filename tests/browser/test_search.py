"""The search dialog in a real browser, by keyboard."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from scripts_engine.models import Script
from tests import factories
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks

pytestmark = [pytest.mark.browser, in_both_looks]


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 1", "shop orders")


@pytest.fixture
def page(admin_browser: AdminBrowser, bob: User, script: Script) -> Page:
    admin_browser.enter_as(bob)
    return admin_browser.open("/admin/hooks/hook/")


def test_ctrl_k_finds_a_script_and_enter_opens_it(
    admin_browser: AdminBrowser, page: Page, script: Script
) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    expect(page.get_by_role("dialog").get_by_role("link")).to_contain_text("Script · Acme")
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/script/{script.pk}/change/")
    assert admin_browser.script_errors == []


def test_arrows_choose_and_escape_returns(admin_browser: AdminBrowser, page: Page) -> None:
    field = page.locator("#searchbar")
    field.focus()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox", name="Search", exact=True)).to_be_focused()
    page.keyboard.type("o")
    expect(page.locator("#command-results li").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#command-results li").nth(1)).to_have_class(re.compile("active"))
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(field).to_be_focused()
    assert admin_browser.script_errors == []


def test_the_button_opens_the_search(admin_browser: AdminBrowser, page: Page) -> None:
    page.get_by_role("button", name=re.compile("Search")).first.click()

    expect(page.get_by_role("searchbox", name="Search", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("nothing like it")
    expect(page.get_by_text("No matches.")).to_be_visible()
    assert admin_browser.script_errors == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
def test_the_open_search_is_accessible(admin_browser: AdminBrowser, page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    expect(page.locator("#command-results li")).to_have_count(1)
    page.keyboard.press("ArrowDown")

    assert findings(page) == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
def test_a_result_that_is_not_chosen_is_accessible(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    expect(page.locator("#command-results li")).not_to_have_class(re.compile("active"))

    assert findings(page) == []
