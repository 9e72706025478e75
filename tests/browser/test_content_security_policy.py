"""The admin's Content-Security-Policy, in the browser that enforces it.

On every other page the fixture holds that nothing offends against it.
"""

import pytest
from playwright.sync_api import Page

from accounts.models import User
from scripts_engine.models import Run
from tests import factories
from tests.browser.conftest import AdminBrowser
from tests.eventually import eventually

pytestmark = pytest.mark.browser

SCRIPT = """() => {
    const script = document.createElement("script");
    script.textContent = "window.hasRun = true";
    document.body.append(script);
}"""
FETCH = "fetch('https://elsewhere.example/', {mode: 'no-cors'}).then(() => true, () => false)"

# A reply that browsers take for a script, a style sheet or an image, whatever asks for it.
REPLY = """return Reply{
    headers = {["Content-Type"] = params.query("as"), ["Access-Control-Allow-Origin"] = "*"},
    body = "globalThis.hasRun = true; globalThis.postMessage('ran')",
}"""
# Each gives true if the hook's reply was used, false if the browser refused it.
USES = {
    "classic": """url => new Promise((resolve) => {
        const script = document.createElement("script");
        script.src = url;
        script.onload = () => resolve(true);
        script.onerror = () => resolve(false);
        document.body.append(script);
    })""",
    "module": "url => import(url).then(() => true, () => false)",
    "worker": """url => new Promise((resolve) => {
        try {
            const worker = new Worker(url);
            worker.onmessage = () => resolve(true);
            worker.onerror = () => resolve(false);
        } catch {
            resolve(false);
        }
    })""",
    "service worker": """
        url => navigator.serviceWorker.register(url).then(() => true, () => false)""",
    "style": """url => new Promise((resolve) => {
        const link = document.createElement("link");
        link.rel = "stylesheet";
        link.href = url;
        link.onload = () => resolve(true);
        link.onerror = () => resolve(false);
        document.head.append(link);
    })""",
    "image": """url => new Promise((resolve) => {
        const image = new Image();
        image.onload = () => resolve(true);
        image.onerror = () => resolve(false);
        image.src = url;
    })""",
    "font": "url => new FontFace('f', `url(${url})`).load().then(() => true, () => false)",
    "fetch": "url => fetch(url).then(() => true, () => false)",
    # A form that is sent leaves the page, and breaks no rule of its policy.
    "form": """url => {
        const form = document.createElement("form");
        form.action = url;
        form.method = "post";
        document.body.append(form);
        form.submit();
    }""",
}

TYPES = dict.fromkeys(USES, "?as=text/javascript") | {
    "style": "?as=text/css",
    "image": "?as=image/svg%2Bxml",
    "font": "?as=font/woff2",
    "form": "?as=text/html",
}


@pytest.fixture
def hook_url(bob: User) -> str:
    issued = factories.make_hook(factories.make_script(bob.organisations.get(), REPLY))
    return "/hook/" + issued.hook.url_with(issued.call_token).split("/hook/")[1]


def directives(page: Page, violations: list[str], number: int = 1) -> list[str]:
    """Waits for so many violations and takes them off the list; the fixture wants no others."""
    # The browser reports while the page is asked something.
    eventually(lambda: page.evaluate("true") and len(violations) >= number)
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
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/")

    page.evaluate("markup => { document.getElementById('main').innerHTML = markup; }", markup)

    assert directives(page, policy_violations) == [directive]
    assert page.evaluate("window.hasRun") is None


def test_an_inline_script_does_not_run(
    admin_browser: AdminBrowser, bob: User, policy_violations: list[str]
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/")

    page.evaluate(SCRIPT)

    assert directives(page, policy_violations) == ["script-src-elem"]
    assert page.evaluate("window.hasRun") is None


def test_a_page_sends_nothing_elsewhere(
    admin_browser: AdminBrowser, bob: User, policy_violations: list[str]
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/")

    assert not page.evaluate(FETCH)

    assert directives(page, policy_violations) == ["connect-src"]


def test_a_page_of_the_admin_uses_no_reply_of_a_hook(
    admin_browser: AdminBrowser, bob: User, hook_url: str, policy_violations: list[str]
) -> None:
    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/")

    used = [use for use, how in USES.items() if page.evaluate(how, hook_url + TYPES[use])]

    assert used == []
    assert directives(page, policy_violations, 9) == [
        "script-src-elem",
        "script-src-elem",
        "worker-src",
        "worker-src",
        "style-src-elem",
        "img-src",
        "font-src",
        "connect-src",
        "form-action",
    ]
    assert page.evaluate("globalThis.hasRun") is None
    assert not Run.objects.exists()


def test_a_page_without_a_policy_loads_no_hook_as_a_part_of_itself(
    admin_browser: AdminBrowser, hook_url: str
) -> None:
    page = admin_browser.open("/openapi.json")
    parts = [use for use in USES if use not in ("fetch", "form")]

    used = [use for use in parts if page.evaluate(USES[use], hook_url + TYPES[use])]

    assert used == []
    assert page.evaluate("globalThis.hasRun") is None
    assert not Run.objects.exists()


def test_a_page_without_a_policy_fetches_and_opens_a_hook(
    admin_browser: AdminBrowser, hook_url: str
) -> None:
    page = admin_browser.open("/openapi.json")

    assert page.evaluate(USES["fetch"], hook_url + "?as=text/plain")
    admin_browser.open(hook_url + "?as=text/plain")

    assert "hasRun" in page.inner_text("body")
    assert Run.objects.count() == 2
