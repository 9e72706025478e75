"""Accessibility of every admin page, by keyboard and screen reader."""

import re
from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse
from playwright.sync_api import Page, expect

from accounts.flows import second_factor
from accounts.models import ApiKey, DeviceToken, Organisation, PinFailures, User
from scripts_engine.models import Hook, Run, Script
from tests import factories
from tests.admin.pages import list_of, logged_in, page_of, run_of
from tests.browser.axe import AXE, findings
from tests.browser.conftest import Desk
from tests.one_of_each import one_of_each

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not AXE.exists(), reason="axe-core is not installed: npm ci in tests/browser"
    ),
]

REGISTERED = list(admin.site._registry)


@pytest.fixture
def root(transactional_db: None) -> User:
    return User.objects.create_superuser("root@example.com", "a password of root")


def enter_as(desk: Desk, user: User) -> None:
    """Logged in, without the two pages of the login."""
    name = settings.SESSION_COOKIE_NAME
    cookie = logged_in(user).cookies[name].value
    desk.page.context.add_cookies(
        [{"name": name, "value": cookie, "url": f"{desk.address}/admin/"}]
    )


def assert_sound(desk: Desk, paths: list[str]) -> None:
    """Nothing is seriously wrong with the pages; a file among them is left out."""
    wrong = [finding for path in paths for finding in judged_one(desk, path)]
    assert not wrong, "\n".join(wrong)


def assert_sound_as_it_is(desk: Desk) -> None:
    wrong = findings(desk.page)
    assert not wrong, "\n".join(wrong)


def judged_one(desk: Desk, path: str) -> list[str]:
    answer = desk.page.request.get(desk.address + path)
    assert answer.status < 500, path
    # Refusals are all one page, which has a test of its own.
    if answer.status >= 400 or "text/html" not in answer.headers.get("content-type", ""):
        return []
    desk.open(path)
    return [f"\n{path}: {finding}" for finding in findings(desk.page)]


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


def test_the_login(desk: Desk, bob: User) -> None:
    desk.open("/admin/")
    assert_sound_as_it_is(desk)

    desk.page.get_by_label("E-mail").fill("nobody@example.com")
    desk.page.get_by_label("Password").fill("wrong")
    desk.page.get_by_role("button", name="Log in").click()
    expect(desk.page.locator(".errornote").first).to_be_visible()
    assert_sound_as_it_is(desk)


def test_the_page_for_the_code(desk: Desk, bob: User) -> None:
    second_factor.begin_enrolment(bob)
    pending = second_factor.find_pending_enrolment(bob)
    assert pending is not None
    pending.confirmed = True
    pending.save()
    enter_as(desk, bob)

    assert_sound(desk, ["/admin/login/code/"])


def test_setting_up_a_second_factor(desk: Desk, bob: User) -> None:
    enter_as(desk, bob)
    assert_sound(desk, ["/admin/second_factor/", "/admin/password_change/"])

    desk.open("/admin/second_factor/")
    desk.page.get_by_role("button", name="Set up").click()
    expect(desk.page.get_by_role("img", name="QR code")).to_be_visible()
    assert_sound_as_it_is(desk)


def test_lists_and_home_while_they_are_empty(desk: Desk, root: User) -> None:
    enter_as(desk, root)

    assert_sound(desk, ["/admin/", *lists()])


def test_lists_and_home_with_rows(desk: Desk, root: User) -> None:
    one_of_each(factories.make_organisation("Acme"))
    enter_as(desk, root)

    assert_sound(desk, ["/admin/", *lists()])


def test_lists_without_matches(desk: Desk, root: User) -> None:
    enter_as(desk, root)

    assert_sound(desk, [f"{path}?q=nothing" for path in lists()])


def test_add_forms(desk: Desk, root: User) -> None:
    enter_as(desk, root)

    assert_sound(desk, forms_for_new_rows())


@pytest.mark.parametrize("model", [Organisation, User, ApiKey, DeviceToken, Script, Hook])
def test_pages_of_a_row(desk: Desk, root: User, model: type) -> None:
    rows = one_of_each(factories.make_organisation("Acme"))
    enter_as(desk, root)

    assert_sound(desk, pages_of(rows[model]))


def test_pages_of_the_other_rows(desk: Desk, root: User) -> None:
    rows = one_of_each(factories.make_organisation("Acme"))
    apart = {Organisation, User, ApiKey, DeviceToken, Script, Hook}
    enter_as(desk, root)

    paths = [path for model, row in rows.items() if model not in apart for path in pages_of(row)]
    assert_sound(desk, paths)


def test_a_run_that_failed(desk: Desk, root: User) -> None:
    script = factories.make_script(factories.make_organisation(), "log.error('x') error('no')")
    run = run_of(factories.make_hook(script).hook, body=bytes(range(256)))
    enter_as(desk, root)

    assert_sound(desk, [page_of(run)])


def test_a_locked_user(desk: Desk, root: User) -> None:
    alice = factories.make_user(factories.make_organisation())
    PinFailures.objects.create(bucket=alice.email, email=alice.email, failures_today=20)
    factories.fail_admin_logins(alice, times=20)
    enter_as(desk, root)

    assert_sound(desk, pages_of(alice))


def test_pages_that_show_a_secret_once(desk: Desk, root: User) -> None:
    script = factories.make_script(factories.make_organisation())
    enter_as(desk, root)
    desk.open(list_of(Hook, "add") + f"?script={script.pk}")
    desk.page.get_by_role("button", name="Create hook").click()
    expect(desk.page.get_by_text("shown only once")).to_be_visible()
    assert_sound_as_it_is(desk)

    desk.open(list_of(ApiKey, "add") + f"?organisation={script.organisation_id}")
    desk.page.get_by_label("Name").fill("warehouse")
    desk.page.get_by_role("button", name="Create API key").click()
    expect(desk.page.get_by_text("The secret is shown only once")).to_be_visible()
    assert_sound_as_it_is(desk)


def test_sending_test_messages(desk: Desk, root: User) -> None:
    enter_as(desk, root)
    assert_sound(desk, ["/admin/message_delivery/"])

    desk.open(page_of(root, "send_test_message"))
    desk.page.get_by_role("button", name="Send", exact=True).click()
    expect(desk.page.get_by_role("status")).to_be_visible()
    assert_sound_as_it_is(desk)


def test_the_not_found_page(desk: Desk, root: User) -> None:
    enter_as(desk, root)

    desk.open("/admin/nothing/")
    assert desk.failures[0].startswith("404 ")
    assert_sound_as_it_is(desk)


def test_the_access_denied_page(desk: Desk, root: User) -> None:
    enter_as(desk, root)

    desk.open(list_of(Run, "add"))
    assert desk.failures[0].startswith("403 ")
    assert_sound_as_it_is(desk)


def test_a_form_with_errors_puts_the_focus_on_the_first(desk: Desk, root: User) -> None:
    enter_as(desk, root)
    desk.open(list_of(User, "add"))
    desk.page.get_by_label("Phone").fill("0170")
    desk.page.get_by_role("button", name="Save", exact=True).click()
    expect(desk.page.get_by_text("Enter the number with its country code")).to_be_visible()

    email = desk.page.get_by_label("E-mail")
    expect(email).to_be_focused()
    expect(email).to_have_attribute("aria-invalid", "true")
    expect(email).to_have_accessible_description(re.compile("This field is required"))
    assert_sound_as_it_is(desk)


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.innerText.trim()")
    return text


def test_the_first_tab_offers_to_skip_the_menu(desk: Desk, root: User) -> None:
    enter_as(desk, root)
    desk.open(list_of(Script))

    desk.page.keyboard.press("Tab")
    assert focused(desk.page) == "Skip to content"
    desk.page.keyboard.press("Enter")
    desk.page.keyboard.press("Tab")
    assert desk.page.evaluate("document.activeElement.closest('#main') !== null")
