"""A script before its first save, and the reference beside its source."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from scripts_engine.models import Run, Script
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.editor import page, script, source_on, write_source
from tests.browser.looks import in_both_looks

__all__ = ["page", "script"]

pytestmark = pytest.mark.browser


# --- Before the first save -----------------------------------------------------------------------


@pytest.fixture
def new_page(admin_browser: AdminBrowser, bob: User) -> Page:
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/scripts_engine/script/add/")
    page.wait_for_function("window.moonhookEditor !== undefined")
    return page


def test_a_starter_fills_source_and_request_and_runs(
    admin_browser: AdminBrowser, new_page: Page
) -> None:
    new_page.get_by_label("Start with an example").select_option("GitHub push")
    new_page.get_by_role("button", name="Run", exact=True).click()

    result = new_page.locator("#try-result")
    expect(result.get_by_text("Succeeded")).to_be_visible()
    expect(result.get_by_text("Not recorded")).to_be_visible()
    expect(result.get_by_text("Add green tea")).to_be_visible()
    assert "X-GitHub-Event" in source_on(new_page)
    assert not Run.objects.exists()
    assert not Script.objects.exists()
    assert admin_browser.failures == []
    assert admin_browser.script_errors == []


def test_the_result_of_a_new_script_survives_its_first_save(new_page: Page) -> None:
    new_page.get_by_label("Start with an example").select_option("CSV")
    new_page.get_by_role("button", name="Run", exact=True).click()
    result = new_page.locator("#try-result")
    expect(result.get_by_text("2 rows")).to_be_visible()
    new_page.get_by_label("Name").fill("orders")

    new_page.keyboard.press("Control+s")
    expect(new_page.get_by_text("Create a hook or a schedule to run it.")).to_be_visible()

    expect(result.get_by_text("2 rows")).to_be_visible()
    expect(new_page.get_by_label("Body", exact=True)).to_have_value(re.compile("product,quantity"))
    expect(new_page.get_by_label("Start with an example")).to_have_count(0)


def test_a_starter_asks_before_it_replaces_typed_text(new_page: Page) -> None:
    asked: list[str] = []
    new_page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    write_source(new_page, "return 'typed'")

    new_page.get_by_label("Start with an example").select_option("CSV")

    assert "Replace the source" in asked[0]
    assert source_on(new_page) == "return 'typed'"
    expect(new_page.get_by_label("Start with an example")).to_have_value("")
    expect(new_page.get_by_label("Body", exact=True)).to_have_value("")


def test_a_starter_asks_before_it_replaces_a_typed_request(new_page: Page) -> None:
    asked: list[str] = []
    new_page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    new_page.get_by_label("Body", exact=True).fill("typed")

    new_page.get_by_label("Start with an example").select_option("HTML form")

    assert len(asked) == 1
    expect(new_page.get_by_label("Body", exact=True)).to_have_value(re.compile("name=Alice"))


def test_an_untouched_starter_is_replaced_without_asking(new_page: Page) -> None:
    asked: list[str] = []
    new_page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    new_page.get_by_label("Start with an example").select_option("CSV")

    new_page.get_by_label("Start with an example").select_option("Stripe event")

    assert asked == []
    assert "payment_intent" in source_on(new_page)


def test_another_new_script_starts_with_an_empty_request(
    admin_browser: AdminBrowser, new_page: Page
) -> None:
    run_with_body(new_page, "of the first script")

    admin_browser.open("/admin/scripts_engine/script/")
    admin_browser.open("/admin/scripts_engine/script/add/")

    new_page.wait_for_function("window.moonhookEditor !== undefined")
    expect(new_page.get_by_label("Body", exact=True)).to_have_value("")


def test_reloading_a_new_script_keeps_its_request(new_page: Page) -> None:
    run_with_body(new_page, "of this script")

    new_page.reload()

    expect(new_page.get_by_label("Body", exact=True)).to_have_value("of this script")


def test_reloading_without_the_source_that_was_tried_starts_empty(new_page: Page) -> None:
    write_source(new_page, "return 'another'")
    run_with_body(new_page, "of another source")
    new_page.on("dialog", lambda dialog: dialog.accept())

    new_page.reload()

    new_page.wait_for_function("window.moonhookEditor !== undefined")
    expect(new_page.get_by_label("Body", exact=True)).to_have_value("")


def test_a_refused_save_of_a_new_script_keeps_its_request(new_page: Page) -> None:
    run_with_body(new_page, "of this script")

    new_page.keyboard.press("Control+s")

    expect(new_page.get_by_text("This field is required").first).to_be_visible()
    expect(new_page.get_by_label("Body", exact=True)).to_have_value("of this script")
    assert not Script.objects.exists()


def run_with_body(page: Page, body: str) -> None:
    page.get_by_label("Body", exact=True).fill(body)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#try-result").get_by_text("Not recorded")).to_be_visible()


# --- The reference -------------------------------------------------------------------------------


@pytest.fixture
def reference(page: Page) -> Locator:
    page.wait_for_function("window.moonhookEditor !== undefined")
    page.get_by_role("tab", name="Lua reference").click()
    return page.locator("#lua-reference")


def test_the_reference_is_searched_and_inserts_by_keyboard(
    admin_browser: AdminBrowser, page: Page, reference: Locator
) -> None:
    write_source(page, "")
    reference.get_by_label("Search the Lua reference").fill("store add")
    expect(reference.locator("li:visible")).to_have_count(1)
    expect(reference.get_by_role("status")).to_have_text(re.compile(r"^1 of \d+\.$"))

    page.keyboard.press("ArrowDown")
    expect(reference.get_by_role("button", name="Insert store.increment(key")).to_be_focused()
    page.keyboard.press("Enter")

    page.wait_for_function("window.moonhookEditor.source() === 'store.increment'")
    assert admin_browser.foreign_requests == []


def test_the_reference_says_that_nothing_matches(reference: Locator) -> None:
    reference.get_by_label("Search the Lua reference").fill("xylophone")

    expect(reference.get_by_role("status")).to_have_text("No matches.")


def test_an_example_of_the_reference_is_copied(page: Page, reference: Locator) -> None:
    reference.get_by_label("Search the Lua reference").fill("uuid")
    reference.get_by_role("button", name="Copy example of uuid.v4").click()

    expect(reference.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "local id = uuid.v4()"


def test_the_tab_beside_the_editor_is_remembered(page: Page, reference: Locator) -> None:
    search = page.get_by_label("Search the Lua reference")
    expect(search).to_be_visible()
    expect(page.locator("#try-it")).to_be_hidden()

    page.reload()

    expect(search).to_be_visible()
    page.get_by_role("tab", name="Lua reference").press("ArrowLeft")
    expect(page.get_by_role("tab", name="Try it")).to_be_focused()
    expect(search).to_be_hidden()
    expect(page.locator("#try-it")).to_be_visible()


@pytest.mark.parametrize("way", ["skip link", "keys"])
def test_what_leads_to_try_it_shows_its_tab(page: Page, reference: Locator, way: str) -> None:
    expect(page.locator("#try-it")).to_be_hidden()

    if way == "keys":
        page.keyboard.press("Control+Enter")
        expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    else:
        page.get_by_role("link", name="Skip to Try it").focus()
        page.keyboard.press("Enter")

    expect(page.locator("#try-it")).to_be_visible()
    expect(reference).to_be_hidden()


def test_the_reference_finds_related_words_and_shows_limits(reference: Locator) -> None:
    reference.get_by_label("Search the Lua reference").fill("daylight")

    expect(reference.locator("li:visible")).to_have_count(1)
    expect(reference.get_by_text("Names are case-sensitive.")).to_be_visible()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
@in_both_looks
def test_the_page_with_a_result_passes_axe(page: Page, reference: Locator) -> None:
    write_source(page, "log.info('tea') store.get('x') error('out of tea')")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#try-result").get_by_text("out of tea").first).to_be_visible()

    assert findings(page) == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser")
@in_both_looks
def test_the_page_of_a_new_script_with_a_result_passes_axe(new_page: Page) -> None:
    new_page.get_by_label("Start with an example").select_option("CSV")
    new_page.keyboard.press("Control+Enter")
    expect(new_page.locator("#try-result").get_by_text("2 rows")).to_be_visible()

    assert findings(new_page) == []
