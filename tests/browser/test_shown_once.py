"""Reloading, going back and other tabs around a secret that is shown once."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import RotatingSecret, User
from core.admin.links import action_of, page_of
from hooks.models import Hook
from tests import factories
from tests.browser.axe import findings
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks

pytestmark = [pytest.mark.browser, in_both_looks]

SECRET = re.compile(r"mh[cs]_\w{46}")


@pytest.fixture(params=["hook", "key"])
def row(request: pytest.FixtureRequest, bob: User) -> RotatingSecret:
    acme = bob.organisations.get()
    rows = {
        "hook": lambda: factories.make_hook(factories.make_script(acme)).hook,
        "key": lambda: factories.make_api_key(acme).api_key,
    }
    return rows[request.param]()


def rotate(admin_browser: AdminBrowser, row: RotatingSecret) -> str:
    """Rotates with an overlap of a day; returns the secret on the page."""
    page = admin_browser.open(action_of(row, "rotate"))
    page.get_by_label("Keep old").select_option("86400")
    page.get_by_role("button", name="Rotate").click()
    page.wait_for_url("**/issued/")
    (secret,) = set(SECRET.findall(page.content()))
    return str(secret)


def is_shown_no_more(page: Page) -> bool:
    expect(page.get_by_role("heading", name="cannot be shown again")).to_be_visible()
    return SECRET.search(page.content()) is None


def test_a_reload_rotates_nothing_and_says_so(
    admin_browser: AdminBrowser, bob: User, row: RotatingSecret
) -> None:
    page = admin_browser.enter_as(bob)
    secret = rotate(admin_browser, row)

    page.reload()

    assert is_shown_no_more(page)
    assert findings(page) == []
    row.refresh_from_db()
    assert row.has_secret(secret)
    assert row.previous_good_until is not None
    assert admin_browser.failures == []


def test_going_back_and_a_second_tab_rotate_nothing(admin_browser: AdminBrowser, bob: User) -> None:
    row = factories.make_hook(factories.make_script(bob.organisations.get())).hook
    page = admin_browser.enter_as(bob)
    secret = rotate(admin_browser, row)

    tab = page.context.new_page()
    tab.goto(page.url)
    page.get_by_role("link", name="I have copied the token").click()
    page.wait_for_url(f"**{page_of(row)}")
    page.go_back()

    assert is_shown_no_more(tab)
    assert is_shown_no_more(page)
    assert Hook.objects.get().has_secret(secret)


def test_the_question_warns_of_the_end_of_an_earlier_overlap(
    admin_browser: AdminBrowser, bob: User, row: RotatingSecret
) -> None:
    page = admin_browser.enter_as(bob)
    rotate(admin_browser, row)

    admin_browser.open(action_of(row, "rotate"))

    expect(page.get_by_text("it stops working immediately")).to_be_visible()
    assert findings(page) == []
