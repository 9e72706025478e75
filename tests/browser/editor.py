"""Helpers that type into the source editor of a script's page."""

from playwright.sync_api import Page


def write_source(page: Page, source: str) -> None:
    """Replaces what is in the editor."""
    focus_source(page)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def focus_source(page: Page) -> None:
    page.wait_for_function("window.moonhookEditor !== undefined")
    page.locator(".ace_content").click()


def source_on(page: Page) -> str:
    """What would be saved."""
    page.wait_for_function("window.moonhookEditor !== undefined")
    source: str = page.locator("textarea[name=source]").input_value()
    return source
