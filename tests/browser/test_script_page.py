"""A script's page in a real browser: editing, trying, saving."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from scripts_engine.models import Run, Script
from tests import factories
from tests.admin.pages import run_of
from tests.browser.conftest import Desk
from tests.browser.editor import focus_source, source_on, write_source

pytestmark = pytest.mark.browser

BROKEN = "local a = 1\nlocal = 2\nreturn a\n"
SETTLED_MS = 1_000
ORDER = '{"id": 9007199254740993, "items": []}'


@pytest.fixture
def script(bob: User) -> Script:
    return factories.make_script(bob.organisations.get(), "return 'saved'", "orders")


@pytest.fixture
def page(desk: Desk, bob: User, script: Script) -> Page:
    desk.log_in(bob)
    return desk.open(f"/admin/scripts_engine/script/{script.pk}/change/")


def test_the_compiler_marks_its_line_before_anything_is_saved(page: Page, script: Script) -> None:
    write_source(page, BROKEN)

    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("2"))
    script.refresh_from_db()
    assert script.source == "return 'saved'"

    write_source(page, "return 1")
    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_count(0)


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


def test_an_unsaved_source_runs(desk: Desk, page: Page, script: Script) -> None:
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
    assert desk.foreign_requests == []
    assert desk.script_errors == []
    assert desk.failures == []


def test_an_error_links_to_its_line(page: Page) -> None:
    write_source(page, "local a = 1\n\nerror('out of tea')\n")
    page.keyboard.press("Control+Enter")

    page.get_by_role("button", name="Line 3").click()
    expect(page.locator(".ace_gutter-active-line")).to_have_text(re.compile("3"))
    expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text(re.compile("3"))


def test_a_recent_request_fills_the_form(desk: Desk, page: Page, script: Script) -> None:
    call = run_of(
        factories.make_hook(script, "shop").hook, body=b"tea pot", headers=(("X-Shop", "tea"),)
    )
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Use a recent request").select_option(str(call.pk))

    expect(page.get_by_label("Body", exact=True)).to_have_value("tea pot")
    expect(page.get_by_label("Headers")).to_have_value("X-Shop: tea")
    expect(page.get_by_label("Query")).to_have_value("a=1")


def test_a_run_can_be_opened_in_try_it(desk: Desk, page: Page, script: Script) -> None:
    call = run_of(factories.make_hook(script).hook, body=b"\xff\x00binary")

    desk.open(f"/admin/scripts_engine/script/{script.pk}/change/?run={call.pk}")
    expect(page.get_by_text("Sends the 8 bytes of that request")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    assert [bytes(run.request_body) for run in Run.objects.all()] == [b"\xff\x00binary"] * 2


def test_json_is_checked_while_it_is_typed(page: Page) -> None:
    body = page.get_by_label("Body", exact=True)
    body.fill('{"a": 1,\n "b" 2}')
    expect(page.get_by_text("Not valid JSON at line 2, column 6")).to_be_visible()

    body.fill('{"a":[9007199254740993,{}],"b":"x{,y"}')
    page.get_by_role("button", name="Format").click()
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


def test_a_selected_binary_payload_survives_saving(desk: Desk, page: Page, script: Script) -> None:
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


def test_an_expired_login_loses_no_input(desk: Desk, bob: User, page: Page, script: Script) -> None:
    write_source(page, "return 'kept'")
    page.context.clear_cookies(name="moonhook_admin")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("You have been logged out")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.locator("#script-problem")).to_contain_text("Nothing is lost")
    script.refresh_from_db()
    assert script.source == "return 'saved'"

    Desk(page.context.new_page(), desk.address).log_in(bob)
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


def test_logging_out_clears_try_it_input(desk: Desk, page: Page) -> None:
    page.get_by_label("Body", exact=True).fill("a secret order")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#try-result").get_by_text("Succeeded")).to_be_visible()
    assert "a secret order" in page.evaluate("JSON.stringify(sessionStorage)")

    page.context.clear_cookies(name="moonhook_admin")
    desk.open("/admin/")

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


def test_leaving_with_unsaved_changes_asks(page: Page, desk: Desk) -> None:
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    focus_source(page)
    page.keyboard.type("x")

    desk.open("/admin/")

    assert asked == ["beforeunload"]
