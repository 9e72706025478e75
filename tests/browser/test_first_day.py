"""An administrator's first day, in a real browser."""

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from hooks.models import Hook
from tests import factories
from tests.admin.pages import run_of
from tests.browser.conftest import AdminBrowser
from tests.browser.editor import source_on, write_source
from tests.browser.looks import in_both_looks

pytestmark = [pytest.mark.browser, in_both_looks]

BROKEN = "local a = 1\n\nlocal = 2\n"
FIXED = 'log.info("called") return "got " .. params.get("body")'


def copied(page: Page, name: str) -> str:
    """What the button of that name puts on the clipboard."""
    page.wait_for_load_state()
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_role("button", name=name, exact=True)).to_have_text("Copied")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def is_wider_than_the_screen(page: Page) -> bool:
    wider: bool = page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return wider


def test_from_the_key_to_the_run(admin_browser: AdminBrowser, bob: User) -> None:
    page = admin_browser.log_in(bob)
    expect(page.get_by_text("No scripts yet.")).to_be_visible()

    admin_browser.open("/admin/accounts/apikey/add/")
    page.get_by_label("Name").fill("warehouse sync")
    page.get_by_role("button", name="Create API key").click()
    expect(page.get_by_text("The secret is shown only once")).to_be_visible()
    login = {
        "uid": copied(page, "Copy Key"),
        "password": copied(page, "Copy Secret"),
        "credential": "ApiKey",
    }
    assert page.request.post(f"{admin_browser.address}/session", data=login).status == 201

    admin_browser.open("/admin/scripts_engine/script/add/")
    page.get_by_label("Name").fill("orders")
    write_source(page, BROKEN)
    page.get_by_role("button", name="Create script").click()
    error = page.get_by_text("Line 3:")
    expect(error).to_be_visible()
    expect(error).to_be_in_viewport()
    assert source_on(page) == BROKEN

    write_source(page, FIXED)
    page.get_by_role("button", name="Create script").click()
    expect(page.get_by_text("Create a hook or a schedule to run it.")).to_be_visible()
    expect(page.get_by_text("No hooks. Create one")).to_be_visible()

    page.locator("section").filter(has_text="No hooks.").get_by_role("link").click()
    page.get_by_label("Name").fill("shop")
    page.get_by_role("radio", name="No sender").click()
    page.get_by_role("button", name="Create hook").click()
    expect(page.get_by_text("shown only once")).to_be_visible()
    reply = page.request.post(copied(page, "Copy URL"), data="an order")
    assert (reply.status, reply.text()) == (200, "got an order")
    curl = copied(page, "Copy Call with Basic authentication")
    assert curl.startswith(f"curl -sS {admin_browser.address}/hook/secure/")

    admin_browser.open("/admin/scripts_engine/run/")
    page.locator("#result_list time").first.click()
    expect(page.get_by_role("heading", name="Request")).to_be_visible()
    expect(page.get_by_text("an order", exact=True)).to_be_visible()
    expect(page.get_by_text("got an order")).to_be_visible()
    expect(page.get_by_text("called", exact=True)).to_be_visible()

    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []


def test_a_script_is_chosen_by_typing(admin_browser: AdminBrowser, bob: User) -> None:
    organisation = bob.organisations.get()
    factories.make_script(organisation, name="orders")
    factories.make_script(organisation, name="invoices")
    page = admin_browser.enter_as(bob)

    admin_browser.open("/admin/hooks/hook/add/")
    page.locator(".select2-selection").click()
    page.locator(".select2-search__field").fill("inv")
    expect(page.get_by_role("option", name="orders")).to_have_count(0)
    page.get_by_role("option", name="invoices").click()
    page.get_by_role("radio", name="No sender").click()
    page.get_by_role("button", name="Create hook").click()

    expect(page.get_by_text("shown only once")).to_be_visible()
    assert Hook.objects.get().script.name == "invoices"


def test_revoking_asks_and_going_back_revokes_nothing(
    admin_browser: AdminBrowser, bob: User
) -> None:
    api_key = factories.make_api_key(bob.organisations.get()).api_key
    page = admin_browser.enter_as(bob)

    admin_browser.open(f"/admin/accounts/apikey/{api_key.pk}/change/")
    admin_browser.open(f"/admin/accounts/apikey/{api_key.pk}/revoke/")
    page.get_by_role("link", name="Cancel").click()
    page.wait_for_url("**/change/")
    api_key.refresh_from_db()
    assert api_key.revoked_at is None

    admin_browser.open(f"/admin/accounts/apikey/{api_key.pk}/revoke/")
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text(") was revoked.")).to_be_visible()
    api_key.refresh_from_db()
    assert api_key.revoked_at is not None


def test_the_list_revokes_selected_keys(admin_browser: AdminBrowser, bob: User) -> None:
    factories.make_api_key(bob.organisations.get())
    page = admin_browser.enter_as(bob)

    admin_browser.open("/admin/accounts/apikey/")
    page.locator("[name=_selected_action]").check()
    page.get_by_label("Select action to run").select_option("revoke_selected")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Revoke").click()

    expect(page.get_by_text(") was revoked.")).to_be_visible()


def test_a_long_name_is_shortened_before_the_list_beside_it(
    admin_browser: AdminBrowser, bob: User
) -> None:
    script = factories.make_script(bob.organisations.get(), "return 1", "orders")
    hook = factories.make_hook(script, "orders of the shop in the old town, by post " * 2).hook
    admin_browser.enter_as(bob)

    admin_browser.page.set_viewport_size({"width": 800, "height": 900})
    page = admin_browser.open(f"/admin/hooks/hook/{hook.pk}/change/")

    name = page.locator("h1 .mh-crumb-longest")
    expect(name).to_have_text(hook.name.strip())
    assert is_cut(name)
    assert not is_cut(page.locator("h1 a").first)


def is_cut(part: Locator) -> bool:
    cut: bool = part.evaluate("part => part.scrollWidth > part.clientWidth")
    return cut


def test_no_page_is_wider_than_the_screen(admin_browser: AdminBrowser, bob: User) -> None:
    script = factories.make_script(bob.organisations.get(), "error('x')", "orders")
    hook = factories.make_hook(script).hook
    run = run_of(hook, body=bytes(range(256)))
    page = admin_browser.enter_as(bob)

    too_wide = [
        path
        for path in (
            "/admin/",
            "/admin/scripts_engine/script/",
            f"/admin/scripts_engine/script/{script.pk}/change/",
            f"/admin/hooks/hook/{hook.pk}/change/",
            f"/admin/hooks/hook/{hook.pk}/rotate/",
            "/admin/scripts_engine/run/",
            f"/admin/scripts_engine/run/{run.pk}/change/",
            f"/admin/accounts/user/{bob.pk}/change/",
        )
        if is_wider_than_the_screen(admin_browser.open(path))
    ]

    assert too_wide == []
    assert page.url.endswith("/change/")
