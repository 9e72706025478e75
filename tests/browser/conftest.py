"""Debian's Chromium on the real pages with the real static files."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from accounts.flows.organisations import create_organisation
from accounts.flows.users import create_user
from accounts.models import Role, User
from tests.browser.looks import LIGHT_AND_WIDE

CHROMIUM = "/usr/bin/chromium"
PASSWORD = "a password of bob"


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@pytest.fixture
def address(live_server: Any, settings: Any) -> str:
    """The server's address, also set as PUBLIC_URL."""
    settings.PUBLIC_URL = live_server.url
    return str(live_server.url)


@pytest.fixture
def bob(transactional_db: None) -> User:
    """Acme's administrator, who may enter the admin."""
    acme = create_organisation("Acme")
    bob = create_user(acme, email="bob@example.com", name="Bob", role=Role.ADMINISTRATOR)
    bob.is_staff = True
    bob.set_password(PASSWORD)
    bob.save()
    return bob


@pytest.fixture(scope="session")
def browser(django_db_setup: None) -> Iterator[Browser]:
    if shutil.which(CHROMIUM) is None:
        pytest.skip(f"There is no {CHROMIUM}: apt-get install chromium")
    with pytest.MonkeyPatch.context() as environment, sync_playwright() as playwright:
        # Playwright's synchronous interface runs an event loop in this thread, in which Django
        # would refuse to ask the database.
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield chromium
        chromium.close()


_NOTE_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(
    `${event.effectiveDirective} ${event.blockedURI} on ${event.documentURI} at ` +
    `${event.sourceFile}:${event.lineNumber} ${event.sample}`
));
"""


class AdminBrowser:
    """An admin page with its requests, failures and script errors."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.foreign_requests: list[str] = []
        self.script_errors: list[str] = []
        self.failures: list[str] = []
        page.on("request", self._note_request)
        page.on("response", self._note_response)
        page.on("pageerror", lambda error: self.script_errors.append(str(error)))

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.foreign_requests.append(request.url)

    def _note_response(self, response: Any) -> None:
        if response.status >= 400:
            self.failures.append(f"{response.status} {response.url}")

    def open(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def log_in(self, user: User) -> Page:
        page = self.open("/admin/")
        page.get_by_label("E-mail").fill(user.email.upper())
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/admin/")
        return page


@pytest.fixture
def policy_violations() -> list[str]:
    """Violations of the Content-Security-Policy on any page of the test."""
    return []


@pytest.fixture
def admin_browser(
    request: pytest.FixtureRequest, browser: Browser, address: str, policy_violations: list[str]
) -> Iterator[AdminBrowser]:
    def note_violation(violation: str) -> None:
        policy_violations.append(violation)

    scheme, width = getattr(request, "param", LIGHT_AND_WIDE)
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(10_000)
    context.expose_function("noteViolation", note_violation)
    context.add_init_script(_NOTE_VIOLATIONS)
    yield AdminBrowser(context.new_page(), address)
    context.close()
    assert policy_violations == []
