"""The page of a script, and its source editor."""

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from scripts_engine.models import Script
from tests import factories
from tests.browser.conftest import AdminBrowser


def write_source(page: Page, source: str) -> None:
    """Replaces what is in the editor."""
    focus_source(page)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def focus_source(page: Page) -> None:
    page.wait_for_function("window.moonhookEditor !== undefined")
    page.locator(".ace_content").click()


def source_on(page: Page) -> str:
    """What would be saved."""
    page.wait_for_function("window.moonhookEditor !== undefined")
    source: str = page.locator("textarea[name=source]").input_value()
    return source


def publish(page: Page) -> None:
    page.locator("#submit-row").get_by_role("button", name="Publish").click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()


def change_page(script: Script) -> str:
    return f"/admin/scripts_engine/script/{script.pk}/change/"


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 'saved'", "orders")


@pytest.fixture
def page(admin_browser: AdminBrowser, bob: User, script: Script) -> Page:
    admin_browser.enter_as(bob)
    return admin_browser.open(f"/admin/scripts_engine/script/{script.pk}/change/")
