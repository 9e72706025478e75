"""Accessibility of every admin page, by keyboard and screen reader."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse
from playwright.sync_api import Error, Page, expect

from accounts.flows import second_factor
from accounts.models import ApiKey, DeviceToken, Organisation, PinFailures, User
from hooks.models import Hook
from scripts_engine.models import Plan, Run, Script
from tests import factories
from tests.admin.pages import list_of, page_of, run_of
from tests.browser.axe import AXE, findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.one_of_each import one_of_each

pytestmark = [
    pytest.mark.browser,
    in_both_looks,
    pytest.mark.skipif(
        not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser"
    ),
]

REGISTERED = list(admin.site._registry)


@pytest.fixture
def root(transactional_db: None) -> User:
    return User.objects.create_superuser("root@example.com", "a password of root")


def assert_sound(admin_browser: AdminBrowser, paths: list[str]) -> None:
    """Nothing is seriously wrong with the pages; a file among them is left out."""
    wrong = [finding for path in paths for finding in judged_one(admin_browser, path)]
    assert not wrong, "\n".join(wrong)


def assert_sound_as_it_is(admin_browser: AdminBrowser) -> None:
    wrong = findings(admin_browser.page)
    assert not wrong, "\n".join(wrong)


def judged_one(admin_browser: AdminBrowser, path: str) -> list[str]:
    try:
        answer = admin_browser.page.goto(admin_browser.address + path)
    except Error as error:
        # A file is saved instead of shown; a refusal of the method has no page.
        if "Download is starting" in error.message:
            return []
        if "ERR_HTTP_RESPONSE_CODE_FAILURE" in error.message:
            # Chromium's own page comes a moment later, and would interrupt the next one.
            admin_browser.page.wait_for_url("chrome-error://**")
            # Otherwise a second refusal in a row would find the page of the first.
            admin_browser.page.goto("about:blank")
            return []
        raise
    assert answer is not None
    assert answer.status < 500, path
    # Refusals are all one page, which has a test of its own.
    if answer.status >= 400 or "text/html" not in answer.headers.get("content-type", ""):
        return []
    return [f"\n{path}: {finding}" for finding in findings(admin_browser.page)]


def lists() -> list[str]:
    return [list_of(model) for model in REGISTERED]


def forms_for_new_rows() -> list[str]:
    return [list_of(model, "add") for model in REGISTERED]


def pages_of(obj: Any) -> list[str]:
    """The page of the row, and all that begin with its address: history, deletion, actions."""
    patterns = admin.site.get_model_admin(type(obj)).get_urls()
    names = [pattern.name for pattern in patterns if pattern.name and pattern.pattern.converters]
    return [address for name in names if (address := _address(name, obj))]


def _address(name: str, obj: Any) -> str:
    try:
        return reverse(f"admin:{name}", args=[quote(obj.pk)])
    except NoReverseMatch:
        return ""


def test_the_login(admin_browser: AdminBrowser, bob: User) -> None:
    admin_browser.open("/admin/")
    assert_sound_as_it_is(admin_browser)

    admin_browser.page.get_by_label("E-mail").fill("nobody@example.com")
    admin_browser.page.get_by_label("Password").fill("wrong")
    admin_browser.page.get_by_role("button", name="Log in").click()
    expect(admin_browser.page.locator(".errornote").first).to_be_visible()
    assert_sound_as_it_is(admin_browser)


def test_the_page_for_the_code(admin_browser: AdminBrowser, bob: User) -> None:
    second_factor.begin_enrolment(bob)
    pending = second_factor.find_pending_enrolment(bob)
    assert pending is not None
    pending.confirmed = True
    pending.save()
    admin_browser.enter_as(bob)

    assert_sound(admin_browser, ["/admin/login/code/"])


def test_setting_up_a_second_factor(admin_browser: AdminBrowser, bob: User) -> None:
    admin_browser.enter_as(bob)
    assert_sound(
        admin_browser,
        ["/admin/second_factor/", "/admin/password_change/", "/admin/own_login/", "/admin/device/"],
    )

    admin_browser.open("/admin/second_factor/")
    admin_browser.page.get_by_role("button", name="Set up").click()
    expect(admin_browser.page.get_by_role("img", name="QR code")).to_be_visible()
    assert_sound_as_it_is(admin_browser)


def test_lists_and_home_while_they_are_empty(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)

    assert_sound(admin_browser, ["/admin/", *lists()])


def test_lists_and_home_with_rows(admin_browser: AdminBrowser, root: User) -> None:
    one_of_each(factories.make_organisation("Acme"))
    admin_browser.enter_as(root)

    assert_sound(admin_browser, ["/admin/", *lists()])


def test_lists_without_matches(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)

    assert_sound(admin_browser, [f"{path}?q=nothing" for path in lists()])


def test_add_forms(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)

    assert_sound(admin_browser, forms_for_new_rows())


@pytest.mark.parametrize("model", [Organisation, User, ApiKey, DeviceToken, Script, Hook])
def test_pages_of_a_row(admin_browser: AdminBrowser, root: User, model: type) -> None:
    rows = one_of_each(factories.make_organisation("Acme"))
    admin_browser.enter_as(root)

    assert_sound(admin_browser, pages_of(rows[model]))


def test_pages_of_the_other_rows(admin_browser: AdminBrowser, root: User) -> None:
    rows = one_of_each(factories.make_organisation("Acme"))
    # A plan has no list, and its page is tested with promotion.
    apart = {Organisation, User, ApiKey, DeviceToken, Script, Hook, Plan}
    admin_browser.enter_as(root)

    paths = [path for model, row in rows.items() if model not in apart for path in pages_of(row)]
    assert_sound(admin_browser, paths)


def test_a_run_that_failed(admin_browser: AdminBrowser, root: User) -> None:
    script = factories.make_script(factories.make_organisation(), "log.error('x') error('no')")
    run = run_of(factories.make_hook(script).hook, body=bytes(range(256)))
    admin_browser.enter_as(root)

    assert_sound(admin_browser, [page_of(run)])


def test_a_locked_user(admin_browser: AdminBrowser, root: User) -> None:
    alice = factories.make_user(factories.make_organisation())
    PinFailures.objects.create(bucket=alice.email, email=alice.email, failures_today=20)
    factories.fail_admin_logins(alice, times=20)
    admin_browser.enter_as(root)

    assert_sound(admin_browser, pages_of(alice))


def test_pages_that_show_a_secret_once(admin_browser: AdminBrowser, root: User) -> None:
    script = factories.make_script(factories.make_organisation())
    admin_browser.enter_as(root)
    admin_browser.open(list_of(Hook, "add") + f"?script={script.pk}")
    admin_browser.page.get_by_role("button", name="Create hook").click()
    expect(admin_browser.page.get_by_text("shown only once")).to_be_visible()
    assert_sound_as_it_is(admin_browser)

    admin_browser.open(list_of(ApiKey, "add") + f"?organisation={script.organisation_id}")
    admin_browser.page.get_by_label("Name").fill("warehouse")
    admin_browser.page.get_by_role("button", name="Create API key").click()
    expect(admin_browser.page.get_by_text("The secret is shown only once")).to_be_visible()
    assert_sound_as_it_is(admin_browser)


def test_sending_test_messages(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)
    assert_sound(admin_browser, ["/admin/message_delivery/"])

    admin_browser.open(page_of(root, "send_test_message"))
    admin_browser.page.get_by_role("button", name="Send", exact=True).click()
    expect(admin_browser.page.get_by_role("status")).to_be_visible()
    assert_sound_as_it_is(admin_browser)


def test_the_installation(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)
    assert_sound(admin_browser, ["/admin/installation/"])


def test_the_not_found_page(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)

    admin_browser.open("/admin/nothing/")
    assert admin_browser.failures[0].startswith("404 ")
    assert_sound_as_it_is(admin_browser)


def test_the_access_denied_page(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)

    admin_browser.open(list_of(Run, "add"))
    assert admin_browser.failures[0].startswith("403 ")
    assert_sound_as_it_is(admin_browser)


def test_a_form_with_errors_puts_the_focus_on_the_first(
    admin_browser: AdminBrowser, root: User
) -> None:
    admin_browser.enter_as(root)
    admin_browser.open(list_of(User, "add"))
    admin_browser.page.get_by_label("Phone").fill("0170")
    admin_browser.page.get_by_role("button", name="Save", exact=True).click()
    expect(admin_browser.page.get_by_text("Enter the number with its country code")).to_be_visible()

    email = admin_browser.page.get_by_label("E-mail")
    expect(email).to_be_focused()
    expect(email).to_have_attribute("aria-invalid", "true")
    expect(email).to_have_accessible_description(re.compile("This field is required"))
    assert_sound_as_it_is(admin_browser)


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.innerText.trim()")
    return text


def test_the_first_tab_offers_to_skip_the_menu(admin_browser: AdminBrowser, root: User) -> None:
    admin_browser.enter_as(root)
    admin_browser.open(list_of(Script))

    admin_browser.page.keyboard.press("Tab")
    assert focused(admin_browser.page) == "Skip to content"
    admin_browser.page.keyboard.press("Enter")
    admin_browser.page.keyboard.press("Tab")
    assert admin_browser.page.evaluate("document.activeElement.closest('#main') !== null")
