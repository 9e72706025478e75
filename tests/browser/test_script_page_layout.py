"""The page of a script: its save bar, keyboard, lists and results."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from scripts_engine.models import Script
from tests import factories
from tests.admin.pages import run_of
from tests.browser.conftest import AdminBrowser
from tests.browser.editor import change_page, page, publish, script, source_on, write_source
from tests.browser.looks import in_both_looks

__all__ = ["page", "script"]

pytestmark = pytest.mark.browser


# --- The save bar, the keyboard, the lists -------------------------------------------------------


@pytest.fixture
def screens(admin_browser: AdminBrowser, bob: User, script: Script) -> Page:
    """The page with lists below it, before it is opened."""
    run_of(factories.make_hook(script, "shop").hook, body=b"tea")
    return admin_browser.enter_as(bob)


def box(page: Page, selector: str) -> Any:
    found = page.locator(selector).first.bounding_box()
    assert found is not None
    return found


@pytest.mark.parametrize("width", [390, 768, 1024, 1280, 1920])
def test_at_the_end_of_the_page_the_save_bar_covers_nothing(
    admin_browser: AdminBrowser, screens: Page, script: Script, width: int
) -> None:
    screens.set_viewport_size({"width": width, "height": 700})
    page = admin_browser.open(change_page(script))
    page.wait_for_function("window.moonhookEditor !== undefined")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")

    bar, first_list = box(page, "#submit-row"), box(page, ".mh-panel")
    side, form = box(page, ".mh-side"), box(page, "#script_form")
    assert form["y"] + form["height"] <= bar["y"] + 1
    assert bar["y"] + bar["height"] <= first_list["y"] + 1
    assert side["y"] + side["height"] <= first_list["y"] + 1


@in_both_looks
def test_a_long_result_does_not_reach_the_lists(
    admin_browser: AdminBrowser, screens: Page, script: Script
) -> None:
    page = admin_browser.open(change_page(script))
    write_source(page, "for n = 1, 60 do log.info(n) end")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")

    tried, first_list = box(page, "#try-it"), box(page, ".mh-panel")
    assert tried["y"] + tried["height"] <= first_list["y"]


def test_the_page_has_one_primary_save_button(page: Page) -> None:
    saving = page.locator("#submit-row button[type=submit]")

    expect(saving).to_have_text(["Publish"])
    expect(page.locator("#submit-row button.bg-primary-600")).to_have_text(["Publish"])


@in_both_looks
def test_run_is_reached_within_ten_keys(page: Page) -> None:
    page.wait_for_function("window.moonhookEditor !== undefined")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to Try it")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_focused()
    expect(run).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()


@in_both_looks
def test_the_keyboard_gets_into_the_editor_and_out(page: Page) -> None:
    page.wait_for_function("window.moonhookEditor !== undefined")
    page.get_by_role("link", name="Skip to editor").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("x")
    assert source_on(page) == "xreturn 'saved'"

    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.closest('.ace_editor')") is None
    assert source_on(page) == "xreturn 'saved'"
    expect(page.get_by_text("Esc, then Tab leaves the editor")).to_be_visible()


def test_on_narrow_screens_try_it_is_above_the_lists(
    admin_browser: AdminBrowser, screens: Page, script: Script
) -> None:
    screens.set_viewport_size({"width": 390, "height": 900})
    page = admin_browser.open(change_page(script))

    tried, runs = box(page, "#try-it"), box(page, ".mh-panel[aria-label='Latest runs'] tr.data-row")
    assert tried["y"] + tried["height"] < box(page, ".mh-panel")["y"]
    assert runs["height"] < 90
    expect(page.locator("#lua-search")).to_be_hidden()


def test_on_a_phone_publish_and_run_come_before_delete(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    editor, publishes = box(page, ".ace_editor"), box(page, "#submit-row [name=_continue]")
    run, deletes = box(page, "#try-run"), box(page, ".mh-delete a")

    assert editor["y"] < publishes["y"] < run["y"] < deletes["y"]


def test_the_editor_takes_the_full_width_until_it_is_given_back(page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    beside = box(page, ".ace_editor")["width"]
    page.get_by_role("button", name="Full width").click()
    page.reload()
    page.wait_for_function("window.moonhookEditor !== undefined")
    full = box(page, ".ace_editor")
    assert full["width"] > beside + 300
    assert box(page, "#try-it")["y"] > full["y"] + full["height"]

    page.get_by_role("button", name="Full width").click()

    assert box(page, ".ace_editor")["width"] == beside


# --- Results -------------------------------------------------------------------------------------


def test_a_run_appears_among_the_latest_runs(page: Page) -> None:
    latest = page.get_by_role("region", name="Latest runs")
    expect(latest.get_by_text("No recorded runs")).to_be_visible()

    page.keyboard.press("Control+Enter")

    expect(latest.get_by_text("Succeeded")).to_be_visible()
    expect(latest.get_by_role("link", name="All runs")).to_be_visible()


def test_the_result_survives_saving(page: Page) -> None:
    write_source(page, "log.info('kept') return 7")
    page.keyboard.press("Control+Enter")
    result = page.locator("#try-result")
    expect(result.get_by_text("kept")).to_be_visible()

    publish(page)

    expect(result.get_by_text("kept")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('moonhook:try-result')") is None
    page.reload()
    page.wait_for_function("window.moonhookEditor !== undefined")
    expect(result).to_be_empty()


def test_an_error_clears_the_earlier_result(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()

    page.get_by_label("Headers").fill("no colon")
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.get_by_text("is not a valid header")).to_be_visible()
    expect(page.locator("#try-result")).to_be_empty()
