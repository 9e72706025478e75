"""Times on pages name their time zone; fields to type in take and show plain times."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timesince import timesince, timeuntil

from accounts.models import ApiKey, AuthEvent, Organisation
from core.admin import times
from hooks.models import RefusedCall
from scripts_engine.models import Run, StoredValue
from tests.admin.addresses import REGISTERED
from tests.admin.pages import OUR_MODELS, list_of, page_of, text_of
from tests.one_of_each import one_of_each

UNNAMED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?![\d:]| UTC)")
WITH_PAGE = [model for model in REGISTERED if model in OUR_MODELS]
WITH_TIME_FILTER = [AuthEvent, Run]


def words_of(response: Any) -> str:
    """The page without its tags, scripts and typed values."""
    visible = re.sub(r"<(script|style|textarea)\b.*?</\1>", "", text_of(response), flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", visible)


def test_a_time_names_its_zone() -> None:
    moment = datetime(2026, 11, 20, 12, 0, 5, tzinfo=UTC)

    assert date_format(moment, "DATETIME_FORMAT") == "2026-11-20 12:00:05 UTC"


def test_lists_name_the_zone_of_their_times(as_root: Client, acme: Organisation) -> None:
    one_of_each(acme)

    assert unnamed_times(as_root, [list_of(model) for model in REGISTERED]) == {}


def test_pages_name_the_zone_of_their_times(as_root: Client, acme: Organisation) -> None:
    rows = one_of_each(acme)

    assert unnamed_times(as_root, [page_of(rows[model]) for model in WITH_PAGE]) == {}


def unnamed_times(client: Client, addresses: list[str]) -> dict[str, list[str]]:
    found = {address: UNNAMED.findall(words_of(client.get(address))) for address in addresses}
    return {address: times for address, times in found.items() if times}


def test_a_time_to_type_in_has_no_zone(as_bob: Client, acme: Organisation) -> None:
    expires_at = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    stored = StoredValue.objects.create(
        organisation=acme, key=b"tea", value="1", expires_at=expires_at
    )

    text = text_of(as_bob.get(page_of(stored)))

    assert 'value="2030-01-02"' in text
    assert 'value="03:04:05"' in text


@pytest.mark.parametrize("model", WITH_TIME_FILTER, ids=lambda model: model.__name__)
def test_a_filter_by_time_names_its_zone(as_bob: Client, model: type[Any]) -> None:
    assert re.search(r"By [a-z ]+ \(UTC\)", words_of(as_bob.get(list_of(model))))


# --- Relative times -------------------------------------------------------------------------------


LISTED_EXACT = re.compile(r">\s*\d{4}-\d\d-\d\d \d\d:\d\d")
NOW = datetime(2026, 11, 20, 12, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (NOW - timedelta(seconds=5), "just now"),
        (NOW - timedelta(minutes=5), "5\N{NO-BREAK SPACE}minutes ago"),
        (NOW - timedelta(days=400), "1\N{NO-BREAK SPACE}year ago"),
        (NOW + timedelta(seconds=34), "in 34 s"),
        (NOW + timedelta(hours=5, minutes=1), "in 5\N{NO-BREAK SPACE}hours"),
    ],
)
def test_a_relative_time_has_the_exact_one_on_hover(
    monkeypatch: pytest.MonkeyPatch, moment: datetime, words: str
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    monkeypatch.setattr(times, "timesince", partial(timesince, now=NOW))
    monkeypatch.setattr(times, "timeuntil", partial(timeuntil, now=NOW))

    shown = times.relative(moment)

    assert shown == (
        f'<time datetime="{moment.isoformat()}" title="{moment:%Y-%m-%d %H:%M:%S} UTC">'
        f"{words}</time>"
    )


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)
def test_lists_show_relative_times(as_root: Client, acme: Organisation, model: type[Any]) -> None:
    one_of_each(acme)
    text = text_of(as_root.get(list_of(model)))
    table = text[text.find('id="result_list"') :] if 'id="result_list"' in text else ""

    assert LISTED_EXACT.findall(table.split("</table>")[0]) == []


def test_a_list_keeps_the_order_and_the_link_of_a_time(as_bob: Client, acme: Organisation) -> None:
    rows = one_of_each(acme)

    keys = as_bob.get(list_of(ApiKey)).context["cl"]
    refused = text_of(as_bob.get(list_of(RefusedCall)))

    assert [getattr(each, "__name__", each) for each in keys.sortable_by][-1] == "last_used_at"
    assert re.search(rf'href="{page_of(rows[RefusedCall])}[^>]*><time datetime=', refused)
    assert as_bob.get(list_of(ApiKey), {"o": "6"}).status_code == 200
