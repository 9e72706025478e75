"""Setting up a second factor, and the login that asks for it."""

from base64 import b32decode

import pytest
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks

pytestmark = [pytest.mark.browser, in_both_looks]


def code_of(secret: str, step: int = 0) -> str:
    """What an app with that secret shows now, or that many half minutes later."""
    return f"{totp(b32decode(secret.replace(' ', '')), drift=step):06d}"


def is_wider_than_the_screen(page: Page) -> bool:
    wider: bool = page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return wider


def test_from_the_secret_to_the_next_login(admin_browser: AdminBrowser, bob: User) -> None:
    page = admin_browser.enter_as(bob)

    admin_browser.open("/admin/second_factor/")
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    assert not is_wider_than_the_screen(page)
    secret = page.locator("#secret").inner_text()
    page.get_by_role("textbox", name="Code").fill(code_of(secret))
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_text("shown only once")).to_be_visible()
    assert not is_wider_than_the_screen(page)
    recovery_codes = page.locator("#recovery-codes").inner_text().split()
    assert len(recovery_codes) == 10
    page.get_by_role("link", name="I have saved the codes").click()
    page.wait_for_url("**/admin/")

    page.context.clear_cookies()
    admin_browser.open("/admin/scripts_engine/script/")
    page.get_by_label("E-mail").fill(bob.email)
    page.get_by_label("Password").fill("a password of bob")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/login/code/**")
    assert not is_wider_than_the_screen(page)
    # A first code that arrived a step late has made the device expect later ones so late, too.
    drift = TOTPDevice.objects.get(user=bob).drift
    page.get_by_role("textbox", name="Code").fill(code_of(secret, step=1 + drift))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/admin/scripts_engine/script/")

    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []
