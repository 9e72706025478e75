"""A script's page in a real browser: editing, trying, saving."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from scripts_engine.flows.author import NOBODY
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script
from tests import factories
from tests.admin.pages import run_of
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.editor import focus_source, source_on, write_source
from tests.browser.looks import in_both_looks

pytestmark = pytest.mark.browser

BROKEN = "local a = 1\nlocal = 2\nreturn a\n"
SETTLED_MS = 1_000
ORDER = '{"id": 9007199254740993, "items": []}'


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 'saved'", "orders")


@pytest.fixture
def page(admin_browser: AdminBrowser, bob: User, script: Script) -> Page:
    admin_browser.log_in(bob)
    return admin_browser.open(f"/admin/scripts_engine/script/{script.pk}/change/")


def test_the_compiler_marks_its_line_before_anything_is_saved(page: Page, script: Script) -> None:
    write_source(page, BROKEN)

    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("2"))
    script.refresh_from_db()
    assert script.source == "return 'saved'"

    write_source(page, "return 1")
    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_count(0)


@in_both_looks
def test_an_undefined_global_is_marked_in_the_margin_and_named_below(
    page: Page, script: Script
) -> None:
    write_source(page, "local total = 1\nsum = 2\nreturn totla\n")

    expect(page.locator(".ace_gutter-cell.ace_warning")).to_have_text(re.compile("3"))
    expect(page.locator(".ace_gutter-cell.ace_info")).to_have_text(re.compile("2"))
    listed = page.locator("#script-warnings")
    expect(listed).to_contain_text("Line 3: Warning: `totla` is not defined. Did you mean `total`?")

    page.keyboard.press("Control+s")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    expect(page.locator(".ace_gutter-cell.ace_warning")).to_have_text(re.compile("3"))
    listed.get_by_role("button", name="Line 3").click()
    expect(page.locator(".ace_gutter-active-line")).to_have_text(re.compile("3"))

    write_source(page, "return 1")
    expect(page.locator(".ace_gutter-cell.ace_warning")).to_have_count(0)
    expect(listed).to_be_empty()


def test_warnings_stay_together_with_the_error_of_a_run(page: Page, script: Script) -> None:
    write_source(page, "local x = totla\nerror('no stock')\n")
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("2"))
    expect(page.locator(".ace_gutter-cell.ace_warning")).to_have_text(re.compile("1"))
    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("2"))


def test_ctrl_s_saves_and_stays(page: Page, script: Script) -> None:
    write_source(page, "return 1\n\n-- here\n")
    page.keyboard.press("Control+s")

    expect(page.get_by_text("was changed successfully")).to_be_visible()
    script = Script.objects.get()
    assert script.source == "return 1\n\n-- here\n"
    expect(page.locator(".ace_gutter-active-line")).to_have_text(re.compile("4"))


def test_ctrl_s_with_a_mistake_saves_nothing_and_marks_it(page: Page, script: Script) -> None:
    write_source(page, BROKEN)
    page.keyboard.press("Control+s")

    expect(page.get_by_text("Line 2:")).to_be_visible()
    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("2"))
    assert source_on(page) == BROKEN
    script.refresh_from_db()
    assert script.source == "return 'saved'"


def test_an_unsaved_source_runs(admin_browser: AdminBrowser, page: Page, script: Script) -> None:
    write_source(page, 'log.warn("stock is low") return {got = FromJson(params.get("body")).id}')
    page.get_by_label("Body", exact=True).fill(ORDER)
    page.get_by_role("button", name="Run", exact=True).click()

    result = page.locator("#try-result")
    expect(result.get_by_text("Succeeded")).to_be_visible()
    expect(result.get_by_text("stock is low")).to_be_visible()
    expect(result.get_by_text("9007199254740993").first).to_be_visible()
    script.refresh_from_db()
    assert script.source == "return 'saved'"
    assert bytes(Run.objects.get().request_body) == ORDER.encode()
    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []


def test_an_error_links_to_its_line(page: Page) -> None:
    write_source(page, "local a = 1\n\nerror('out of tea')\n")
    page.keyboard.press("Control+Enter")

    page.get_by_role("button", name="Line 3").click()
    expect(page.locator(".ace_gutter-active-line")).to_have_text(re.compile("3"))
    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("3"))


def test_a_recent_request_fills_the_form(
    admin_browser: AdminBrowser, page: Page, script: Script
) -> None:
    call = run_of(
        factories.make_hook(script, "shop").hook, body=b"tea pot", headers=(("X-Shop", "tea"),)
    )
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Use a recent request").select_option(str(call.pk))

    expect(page.get_by_label("Body", exact=True)).to_have_value("tea pot")
    expect(page.get_by_label("Headers")).to_have_value("X-Shop: tea")
    expect(page.get_by_label("Query", exact=True)).to_have_value("a=1")


def test_a_run_can_be_opened_in_try_it(
    admin_browser: AdminBrowser, page: Page, script: Script
) -> None:
    call = run_of(factories.make_hook(script).hook, body=b"\xff\x00binary")

    admin_browser.open(f"/admin/scripts_engine/script/{script.pk}/change/?run={call.pk}")
    expect(page.get_by_text("Sends the 8 bytes of that request")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    assert [bytes(run.request_body) for run in Run.objects.all()] == [b"\xff\x00binary"] * 2


def test_json_is_checked_while_it_is_typed(page: Page) -> None:
    body = page.get_by_label("Body", exact=True)
    body.fill('{"a": 1,\n "b" 2}')
    expect(page.get_by_text("Not valid JSON at line 2, column 6")).to_be_visible()

    body.fill('{"a":[9007199254740993,{}],"b":"x{,y"}')
    page.get_by_role("button", name="Format", exact=True).click()
    expect(body).to_have_value('{\n  "a": [\n    9007199254740993,\n    {}\n  ],\n  "b": "x{,y"\n}')


def test_an_invalid_header_is_reported_at_its_field(page: Page) -> None:
    page.get_by_label("Headers").fill("no colon")
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.get_by_text("is not a valid header")).to_be_visible()
    expect(page.get_by_label("Headers")).to_have_attribute("aria-invalid", "true")
    assert not Run.objects.exists()


def test_try_it_input_survives_saving(page: Page) -> None:
    page.get_by_label("Body", exact=True).fill("kept")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()

    page.keyboard.press("Control+s")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    expect(page.get_by_label("Body", exact=True)).to_have_value("kept")


def test_a_selected_binary_payload_survives_saving(
    admin_browser: AdminBrowser, page: Page, script: Script
) -> None:
    call = run_of(factories.make_hook(script).hook, body=b"\xff\x00bin")
    page.get_by_label("Body", exact=True).fill("typed before")
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Use a recent request").select_option(str(call.pk))
    expect(page.get_by_text("Sends the 5 bytes of that request")).to_be_visible()

    page.keyboard.press("Control+s")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    assert [bytes(run.request_body) for run in Run.objects.all()] == [b"\xff\x00bin"] * 2


def test_an_expired_login_loses_no_input(
    admin_browser: AdminBrowser, bob: User, page: Page, script: Script
) -> None:
    write_source(page, "return 'kept'")
    page.context.clear_cookies(name="moonhook_admin")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("You have been logged out")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.locator("#script-problem")).to_contain_text("Nothing is lost")
    script.refresh_from_db()
    assert script.source == "return 'saved'"

    AdminBrowser(page.context.new_page(), admin_browser.address).log_in(bob)
    page.keyboard.press("Control+s")

    expect(page.get_by_text("was changed successfully")).to_be_visible()
    script.refresh_from_db()
    assert script.source == "return 'kept'"


def test_a_body_over_the_limit_is_refused_with_a_message(page: Page) -> None:
    page.get_by_label("Body", exact=True).fill("x" * 6_000_000)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("The maximum payload is 1048576 bytes")).to_be_visible()

    page.get_by_label("Body", exact=True).fill("ok")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()


def test_logging_out_clears_try_it_input(admin_browser: AdminBrowser, page: Page) -> None:
    page.get_by_label("Body", exact=True).fill("a secret order")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    assert "a secret order" in page.evaluate("JSON.stringify(sessionStorage)")

    page.context.clear_cookies(name="moonhook_admin")
    admin_browser.open("/admin/")

    assert page.evaluate("JSON.stringify(sessionStorage)") == "{}"


def test_moonhook_names_are_completed(page: Page) -> None:
    write_source(page, "")
    page.keyboard.type("store.in")
    expect(page.locator(".ace_autocomplete")).to_contain_text("store.increment")

    # The list is redrawn once typing stops, which clears the selection.
    page.wait_for_timeout(SETTLED_MS)

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.wait_for_function("window.moonhookEditor.source() === 'store.increment'")


def test_enter_starts_a_new_line_while_nothing_is_selected(page: Page) -> None:
    write_source(page, "")
    page.keyboard.type("local x = log")
    expect(page.locator(".ace_autocomplete")).to_contain_text("log.info")
    page.keyboard.press("Enter")

    page.wait_for_function("window.moonhookEditor.source() === 'local x = log\\n'")


def test_leaving_with_unsaved_changes_asks(page: Page, admin_browser: AdminBrowser) -> None:
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    focus_source(page)
    page.keyboard.type("x")

    admin_browser.open("/admin/")

    assert asked == ["beforeunload"]


# --- The save bar, the keyboard, the lists -------------------------------------------------------


@pytest.fixture
def screens(admin_browser: AdminBrowser, bob: User, script: Script) -> Page:
    """The page with lists below it, before it is opened."""
    run_of(factories.make_hook(script, "shop").hook, body=b"tea")
    return admin_browser.log_in(bob)


def box(page: Page, selector: str) -> Any:
    found = page.locator(selector).first.bounding_box()
    assert found is not None
    return found


def change_page(script: Script) -> str:
    return f"/admin/scripts_engine/script/{script.pk}/change/"


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

    expect(saving).to_have_text(["Save", "Save and continue editing"])
    expect(page.locator("#submit-row button.bg-primary-600")).to_have_text(["Save"])


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

    page.keyboard.press("Control+s")
    expect(page.get_by_text("was changed successfully")).to_be_visible()

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


# --- Recent requests -----------------------------------------------------------------------------


def test_failed_requests_can_be_listed_alone(page: Page, script: Script) -> None:
    hook = factories.make_hook(script, "shop").hook
    run_of(hook, body=b"good")
    update_script(script, author=NOBODY, source="error('no')")
    bad = run_of(factories.make_hook(Script.objects.get(), "again").hook, body=b"bad")
    chooser = page.get_by_label("Use a recent request")
    page.get_by_role("button", name="Refresh").click()
    expect(chooser.locator("option")).to_have_count(3)

    page.get_by_label("Failed only").check()

    expect(chooser.locator("option")).to_have_count(2)
    expect(chooser.locator("option").last).to_have_attribute("value", str(bad.pk))
    expect(chooser.locator("option").last).to_contain_text("Failed · POST · bad · again")


def test_a_run_in_the_address_is_selected(
    admin_browser: AdminBrowser, page: Page, script: Script
) -> None:
    call = run_of(factories.make_hook(script).hook, body=b"tea pot")

    admin_browser.open(f"{change_page(script)}?run={call.pk}")

    expect(page.get_by_label("Body", exact=True)).to_have_value("tea pot")
    expect(page.get_by_label("Use a recent request")).to_have_value(str(call.pk))
    expect(page.locator("#try-notice")).to_be_empty()
    assert page.url.endswith(change_page(script))


@pytest.mark.parametrize("asked", ["foreign", "other", "unknown", "nonsense"])
def test_another_run_in_the_address_is_ignored_with_a_notice(
    admin_browser: AdminBrowser, page: Page, script: Script, asked: str
) -> None:
    globex = factories.make_script(factories.make_organisation("Globex"))
    other = factories.make_script(script.organisation, name="other")
    runs = {
        "foreign": run_of(factories.make_hook(globex).hook, body=b"hers").pk,
        "other": run_of(factories.make_hook(other).hook, body=b"other").pk,
        "unknown": "018f0000-0000-7000-8000-000000000000",
        "nonsense": "<b>",
    }

    admin_browser.open(f"{change_page(script)}?run={runs[asked]}")

    expect(page.locator("#try-notice")).to_have_text(
        "The requested run is not available for this script. Nothing was filled in."
    )
    expect(page.get_by_label("Body", exact=True)).to_have_value("")
    expect(page.get_by_label("Use a recent request")).to_have_value("")


# --- Before the first save -----------------------------------------------------------------------


@pytest.fixture
def new_page(admin_browser: AdminBrowser, bob: User) -> Page:
    admin_browser.log_in(bob)
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
    expect(new_page.get_by_text("was added successfully")).to_be_visible()

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
    page.evaluate("document.getElementById('lua-reference').open = true")
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


def test_the_reference_is_open_on_large_screens_until_it_is_folded(page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 1080})
    page.reload()
    search = page.get_by_label("Search the Lua reference")
    expect(search).to_be_visible()
    page.locator("#lua-reference summary").click()
    expect(search).to_be_hidden()

    page.reload()

    page.wait_for_function("window.moonhookEditor !== undefined")
    expect(search).to_be_hidden()


def test_the_reference_stays_open_on_a_small_screen(page: Page) -> None:
    search = page.get_by_label("Search the Lua reference")
    page.wait_for_function("window.moonhookEditor !== undefined")
    expect(search).to_be_hidden()
    page.locator("#lua-reference summary").click()
    expect(search).to_be_visible()

    page.reload()

    expect(search).to_be_visible()


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
