"""From the invitation of an administrator, by a real mail, to their first login."""

import re
from typing import Any

import pytest
from django.core import mail
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.flows.organisations import create_organisation
from accounts.models import User
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.browser.test_second_factor import code_of, is_wider_than_the_screen
from tests.factories import work
from tests.servers import MailServer

pytestmark = [pytest.mark.browser, in_both_looks]

FRANK = "frank@example.net"
NEW = "a password of frank"


@pytest.fixture
def mail_server(settings: Any) -> Any:
    with MailServer().running() as server:
        settings.IS_EMAIL_CONFIGURED = True
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        mail.outbox.clear()
        yield server


def link_in(server: MailServer) -> str:
    """The link in the newest mail, after the background work that is due."""
    work()
    text = server.messages[-1].get_content()
    (link,) = re.findall(r"https?://\S+\?link=\S+", text)
    return str(link)


def set_password(page: Page) -> None:
    page.get_by_role("textbox", name="New password").first.fill(NEW)
    page.get_by_role("textbox", name="New password again").fill(NEW)
    page.get_by_role("button", name="Set password").click()
    page.wait_for_url("**/admin/login/**")
    expect(page.get_by_text("Your new password is set")).to_be_visible()


def log_in(page: Page) -> None:
    page.get_by_label("E-mail").fill(FRANK)
    page.get_by_label("Password").fill(NEW)
    page.get_by_role("button", name="Log in").click()


def test_from_the_invitation_to_the_first_login(
    admin_browser: AdminBrowser, bob: User, mail_server: MailServer, settings: Any
) -> None:
    create_organisation("Globex")
    page = admin_browser.enter_as(bob)
    admin_browser.open(reverse("admin:accounts_user_invite_administrator"))
    page.get_by_label("E-mail").fill(FRANK)
    page.get_by_label("Name").fill("Frank")
    page.get_by_label("Role").select_option("Administrator")
    assert not is_wider_than_the_screen(page)
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_text(f"{FRANK} was invited by e-mail")).to_be_visible()

    page.context.clear_cookies()
    link = link_in(mail_server)
    assert mail_server.messages[-1]["To"] == FRANK
    page.goto(link)
    assert "link=" not in page.url
    expect(page.get_by_text("the admin of Acme")).to_be_visible()
    assert not is_wider_than_the_screen(page)
    set_password(page)

    settings.IS_SECOND_FACTOR_REQUIRED = True
    log_in(page)
    page.wait_for_url("**/admin/second_factor/**")
    page.get_by_role("button", name="Set up").click()
    page.get_by_role("textbox", name="Code").fill(code_of(page.locator("#secret").inner_text()))
    page.get_by_role("button", name="Turn on").click()
    page.get_by_role("link", name="I have saved the codes").click()
    page.wait_for_url("**/admin/")

    admin_browser.open("/admin/accounts/organisation/")
    expect(page.get_by_role("link", name="Acme")).to_be_visible()
    expect(page.get_by_text("Globex")).to_have_count(0)
    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []

    page.goto(link)
    expect(page.get_by_text("This link is no longer valid")).to_be_visible()
    assert not is_wider_than_the_screen(page)


def test_a_forgotten_password(
    admin_browser: AdminBrowser, bob: User, mail_server: MailServer
) -> None:
    page = admin_browser.open("/admin/")
    page.get_by_role("link", name="Forgot your password?").click()
    expect(page.get_by_role("button", name="Send link")).to_be_visible()
    assert not is_wider_than_the_screen(page)
    page.get_by_label("E-mail").fill(bob.email)
    page.get_by_role("button", name="Send link").click()
    expect(page.get_by_text("If this address has a login")).to_be_visible()
    page.goto(link_in(mail_server))
    set_password(page)

    assert User.objects.get(pk=bob.pk).check_password(NEW)
    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []
