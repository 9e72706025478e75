"""The admin's Content-Security-Policy, in the browser that enforces it.

On every other page the fixture holds that nothing offends against it.
"""

import pytest
from playwright.sync_api import Page

from accounts.models import User
from tests.browser.conftest import AdminBrowser

pytestmark = pytest.mark.browser

SCRIPT = """() => {
    const script = document.createElement("script");
    script.textContent = "window.hasRun = true";
    document.body.append(script);
}"""
FETCH = "fetch('https://elsewhere.example/', {mode: 'no-cors'}).then(() => true, () => false)"


def directives(page: Page, violations: list[str]) -> list[str]:
    """The directives that were offended against up to now, for the test to have expected."""
    page.wait_for_timeout(500)
    found = [violation.split()[0] for violation in violations]
    violations.clear()
    return found


@pytest.mark.parametrize(
    ("markup", "directive"),
    [
        ("<img src=data:, onerror='window.hasRun = true'>", "script-src-attr"),
        ("<iframe srcdoc='<script>parent.hasRun = true</script>'></iframe>", "script-src-elem"),
        ("<img src='https://elsewhere.example/?stolen'>", "img-src"),
        ("<base href='https://elsewhere.example/'>", "base-uri"),
        ("<object data='/static/moonhook/copy.js'></object>", "object-src"),
        ("<iframe src='https://elsewhere.example/'></iframe>", "frame-src"),
        ("<link rel=stylesheet href='https://elsewhere.example/x.css'>", "style-src-elem"),
    ],
)
def test_injected_markup_runs_and_loads_nothing(
    admin_browser: AdminBrowser,
    bob: User,
    policy_violations: list[str],
    markup: str,
    directive: str,
) -> None:
    page = admin_browser.log_in(bob)

    page.evaluate("markup => { document.getElementById('main').innerHTML = markup; }", markup)

    assert directives(page, policy_violations) == [directive]
    assert page.evaluate("window.hasRun") is None


def test_an_inline_script_does_not_run(
    admin_browser: AdminBrowser, bob: User, policy_violations: list[str]
) -> None:
    page = admin_browser.log_in(bob)

    page.evaluate(SCRIPT)

    assert directives(page, policy_violations) == ["script-src-elem"]
    assert page.evaluate("window.hasRun") is None


def test_a_page_sends_nothing_elsewhere(
    admin_browser: AdminBrowser, bob: User, policy_violations: list[str]
) -> None:
    page = admin_browser.log_in(bob)

    assert not page.evaluate(FETCH)

    assert directives(page, policy_violations) == ["connect-src"]
