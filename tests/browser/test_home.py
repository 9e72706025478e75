"""The home page in a real browser."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from tests import factories
from tests.browser.conftest import AdminBrowser
from tests.browser.looks import in_both_looks
from tests.eventually import eventually

pytestmark = [pytest.mark.browser, in_both_looks]


def colours_of_chart(page: Page) -> list[str]:
    """Each opaque colour that the chart is painted in, in hexadecimal."""
    found: list[str] = page.evaluate(
        """() => {
            const canvas = document.querySelector("canvas.chart");
            const { data } = canvas.getContext("2d").getImageData(
                0, 0, canvas.width, canvas.height
            );
            const colours = new Set();
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 3] === 255) {
                    const parts = [...data.slice(at, at + 3)];
                    colours.add("#" + parts.map(p => p.toString(16).padStart(2, "0")).join(""));
                }
            }
            return [...colours];
        }"""
    )
    return found


def test_the_runs_of_the_day_are_drawn(admin_browser: AdminBrowser, bob: User) -> None:
    script = factories.make_script(bob.organisations.get(), name="orders")
    hook = factories.make_hook(script).hook
    now = timezone.now()
    for number in range(1, 20):
        factories.make_past_run(hook, now - timedelta(hours=number))
        factories.make_past_run(
            hook, now - timedelta(hours=number), "failed", error_message="no such order"
        )

    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/")

    chart = page.get_by_role("img", name="38 in all, 19 succeeded, 19 failed")
    expect(chart).to_be_visible()
    eventually(lambda: {"#059669", "#dc2626"} <= set(colours_of_chart(page)))
    expect(page.get_by_text("no such order")).to_be_visible()
    expect(page.get_by_text("19 failures")).to_be_visible()
    page.get_by_role("link", name="Failed 19").click()
    expect(page.get_by_text("orders").first).to_be_visible()
    page.wait_for_url(
        "**/scripts_engine/run/?within=24h&source=counted&attempts=all&status__exact=failed"
    )

    assert admin_browser.foreign_requests == []
    assert admin_browser.script_errors == []
    assert admin_browser.failures == []


def test_home_fits_the_screen(admin_browser: AdminBrowser, bob: User) -> None:
    organisation = bob.organisations.get()
    hook = factories.make_hook(factories.make_script(organisation, name="x" * 90)).hook
    factories.make_past_run(hook, timezone.now(), "failed", error_message="y" * 200)

    admin_browser.enter_as(bob)
    page = admin_browser.open("/admin/")

    expect(page.get_by_role("heading", name="Failures by error")).to_be_visible()
    assert not page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
