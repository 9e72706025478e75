"""Usage of 90 days on the pages of the organisation, the script and the hook."""

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from accounts.models import Organisation
from hooks.models import Hook
from scripts_engine.models import DailyUsage
from scripts_engine.usage import today
from tests import factories
from tests.admin.pages import page_of, text_of


def used(hook: Hook, ago: int = 0, **values: Any) -> None:
    given = {"calls": 0, "failures": 0, "bytes": 0, "cpu_seconds": 0.0, **values}
    DailyUsage.objects.create(
        organisation=hook.script.organisation,
        script_id=hook.script_id,
        hook_id=hook.pk,
        day=today() - timedelta(days=ago),
        **given,
    )


@pytest.fixture
def rows(acme: Organisation, acme_hook: Hook, globex: Organisation) -> list[Any]:
    """The organisation, the script and the hook; each of them has used more than the next."""
    used(acme_hook, 3, calls=1200, failures=34, bytes=3 * 1024**2, cpu_seconds=12.34)
    used(acme_hook, 90, calls=1_000_000)
    used(factories.make_hook(acme_hook.script).hook, calls=50, bytes=1024**2)
    used(factories.hook_that(acme, name="other"), calls=7, failures=7)
    used(factories.hook_that(globex), calls=500)
    return [acme, acme_hook.script, acme_hook]


def words_of(page: Any) -> str:
    return " ".join(unescape(strip_tags(text_of(page))).split())


def test_each_page_shows_its_own_usage(as_bob: Client, rows: list[Any]) -> None:
    texts = [words_of(as_bob.get(page_of(row))) for row in rows]

    assert "Calls 1,257 · Failed 41 · Payloads and replies 4 MiB · CPU time 12.3 s" in texts[0]
    assert "Calls 1,250 · Failed 34 · Payloads and replies 4 MiB · CPU time 12.3 s" in texts[1]
    assert "Calls 1,200 · Failed 34 · Payloads and replies 3 MiB · CPU time 12.3 s" in texts[2]


def test_the_picture_has_a_text_and_each_day_a_title(as_bob: Client, rows: list[Any]) -> None:
    page = as_bob.get(page_of(rows[2])).content.decode()

    assert 'aria-label="Calls by day in the last 90 days: 1,200, 34 failed"' in page
    day = today() - timedelta(days=3)
    assert f"<title>{day}: 1,200 calls, 34 failed</title>" in page


def test_a_page_without_calls_says_so(as_bob: Client, acme_hook: Hook) -> None:
    rows = [acme_hook.script.organisation, acme_hook.script, acme_hook]
    pages = [text_of(as_bob.get(page_of(row))) for row in rows]

    assert all("No calls in 90 days." in page for page in pages)


def test_a_library_has_no_usage(as_bob: Client, acme: Organisation) -> None:
    library = factories.make_script(acme, "return {}", is_library=True)

    assert "No calls in 90 days." not in text_of(as_bob.get(page_of(library)))
