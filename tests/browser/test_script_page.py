"""A script's page in a real browser: editing, trying, saving."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script
from scripts_engine.runs.spec import NOBODY
from tests import factories
from tests.admin.pages import run_of
from tests.browser.conftest import AdminBrowser
from tests.browser.editor import (
    change_page,
    focus_source,
    page,
    publish,
    script,
    source_on,
    write_source,
)
from tests.browser.looks import in_both_looks
from tests.eventually import eventually

__all__ = ["page", "script"]

pytestmark = pytest.mark.browser
BROKEN = "local a = 1\nlocal = 2\nreturn a\n"
ORDER = '{"id": 9007199254740993, "items": []}'


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

    publish(page)
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


def test_publishing_stays_on_the_page(page: Page, script: Script) -> None:
    write_source(page, "return 1\n\n-- here\n")
    publish(page)

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

    publish(page)
    expect(page.get_by_label("Body", exact=True)).to_have_value("kept")


def test_a_selected_binary_payload_survives_saving(
    admin_browser: AdminBrowser, page: Page, script: Script
) -> None:
    call = run_of(factories.make_hook(script).hook, body=b"\xff\x00bin")
    page.get_by_label("Body", exact=True).fill("typed before")
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Use a recent request").select_option(str(call.pk))
    expect(page.get_by_text("Sends the 5 bytes of that request")).to_be_visible()

    publish(page)
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

    expect(page.locator("#draft-status")).to_contain_text("Draft saved")
    assert script.versions.drafts().get().source == "return 'kept'"


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

    eventually(lambda: is_completed_by_tab(page, "store.increment"))


def is_completed_by_tab(page: Page, name: str) -> bool:
    """Tab selects, then inserts; the list is redrawn when typing stops, without a selection."""
    page.keyboard.press("Tab")
    return source_on(page) == name


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


def test_ctrl_k_in_the_editor_opens_the_search(page: Page, script: Script) -> None:
    focus_source(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("saved")

    expect(page.get_by_role("dialog").get_by_role("searchbox")).to_have_value("saved")
    assert source_on(page) == "return 'saved'"


@in_both_looks
def test_scrollbars_follow_the_colour_scheme(page: Page) -> None:
    scheme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    is_dark = page.evaluate("document.documentElement.classList.contains('dark')")

    assert scheme == ("dark" if is_dark else "light")
