"""Debian's Chromium on the real pages with the real static files."""

import shutil
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from django.conf import settings as project_settings
from django.contrib.auth.hashers import make_password
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from accounts.flows.organisations import create_organisation
from accounts.flows.users import create_user
from accounts.models import Role, User
from tests.admin.pages import logged_in
from tests.browser.looks import LIGHT_AND_WIDE, Look

CHROMIUM = "/usr/bin/chromium"
PASSWORD = "a password of bob"
# Only a failure takes so long: a machine that is busy with something else is slow, not wrong.
PATIENCE_MS = 60_000


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
    bob.password = _hashed(PASSWORD)
    bob.save()
    return bob


@cache
def _hashed(password: str) -> str:
    return make_password(password)


@pytest.fixture(scope="session")
def browser(django_db_setup: None) -> Iterator[Browser]:
    if shutil.which(CHROMIUM) is None:
        pytest.skip(f"There is no {CHROMIUM}: apt-get install chromium")
    with pytest.MonkeyPatch.context() as environment, sync_playwright() as playwright:
        # Playwright's synchronous interface runs an event loop in this thread, in which Django
        # would refuse to ask the database.
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        expect.set_options(timeout=PATIENCE_MS)
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM,
            # Without a graphics card, its emulation takes as much time as the pages do.
            args=[
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--disable-software-rasterizer",
                "--process-per-site",
            ],
        )
        yield chromium
        chromium.close()


_NOTE_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(
    `${event.effectiveDirective} ${event.blockedURI} on ${event.documentURI} at ` +
    `${event.sourceFile}:${event.lineNumber} ${event.sample}`
));
"""


class Contexts:
    """One browser context for each look, which keeps the static files that it has loaded.

    ``violations`` are those of the Content-Security-Policy since they were last cleared.
    """

    def __init__(self, browser: Browser) -> None:
        self.violations: list[str] = []
        self._browser = browser
        self._contexts: dict[Look, BrowserContext] = {}

    def of(self, look: Look) -> BrowserContext:
        if look not in self._contexts:
            self._contexts[look] = self._new(look)
        return self._contexts[look]

    def _new(self, look: Look) -> BrowserContext:
        scheme, width = look
        context = self._browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MS)
        context.expose_function("noteViolation", self._note_violation)
        context.add_init_script(_NOTE_VIOLATIONS)
        return context

    def _note_violation(self, violation: str) -> None:
        self.violations.append(violation)


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Contexts:
    return Contexts(browser)


def forget_everything(context: BrowserContext, address: str) -> None:
    """Closes all pages; cookies and what pages have stored are gone, cached files stay."""
    for page in context.pages:
        page.close()
    context.clear_cookies()
    page = context.new_page()
    stored = {"origin": address, "storageTypes": "local_storage,indexeddb,service_workers"}
    context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
    page.close()


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

    def enter_as(self, user: User) -> Page:
        """Gives the browser a session of the user, without the pages of the login."""
        name = project_settings.SESSION_COOKIE_NAME
        cookie = logged_in(user).cookies[name].value
        self.page.context.add_cookies(
            [{"name": name, "value": cookie, "url": f"{self.address}/admin/"}]
        )
        return self.page

    def log_in(self, user: User) -> Page:
        """Logs in as a person does."""
        page = self.open("/admin/")
        page.get_by_label("E-mail").fill(user.email.upper())
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/admin/")
        return page


@pytest.fixture
def policy_violations(contexts: Contexts) -> list[str]:
    """Violations of the Content-Security-Policy on any page of the test."""
    return contexts.violations


@pytest.fixture
def admin_browser(
    request: pytest.FixtureRequest, contexts: Contexts, address: str, policy_violations: list[str]
) -> Iterator[AdminBrowser]:
    context = contexts.of(getattr(request, "param", LIGHT_AND_WIDE))
    policy_violations.clear()
    yield AdminBrowser(context.new_page(), address)
    forget_everything(context, address)
    assert policy_violations == []
