"""Times on pages name their time zone; fields to type in take and show plain times."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils.formats import date_format

from accounts.models import AuthEvent, Organisation
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
