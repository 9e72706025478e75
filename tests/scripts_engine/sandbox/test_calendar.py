"""time.add and time.in_zone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts_engine.sandbox.child import operations

from .conftest import run_in


@pytest.mark.parametrize(
    ("moment", "amounts", "result"),
    [
        ("2024-01-31T12:00:00Z", "{months = 1}", "2024-02-29T12:00:00Z"),
        ("2023-01-31T12:00:00Z", "{months = 1}", "2023-02-28T12:00:00Z"),
        ("2024-02-29T00:00:00Z", "{years = 1}", "2025-02-28T00:00:00Z"),
        ("2024-02-29T00:00:00Z", "{years = -4}", "2020-02-29T00:00:00Z"),
        ("2024-03-31T00:00:00Z", "{months = -13}", "2023-02-28T00:00:00Z"),
        ("2024-01-31T00:00:00Z", "{months = 1, days = 1}", "2024-03-01T00:00:00Z"),
        ("2024-01-31T00:00:00Z", "{weeks = 1, hours = -1, minutes = 30}", "2024-02-06T23:30:00Z"),
        ("2024-12-31T23:59:59Z", "{seconds = 1}", "2025-01-01T00:00:00Z"),
        ("1969-12-31T00:00:00Z", "{days = 1.5, months = 2.0}", "1970-03-01T12:00:00Z"),
        ("2024-01-01T00:00:00Z", "{}", "2024-01-01T00:00:00Z"),
    ],
)
def test_amounts_are_added_in_utc(evaluate, moment, amounts, result):
    source = f"return time.format(time.add(time.parse('{moment}'), {amounts}))"
    assert evaluate(source).decode() == result


@given(
    seconds=st.integers(-30_000_000_000, 30_000_000_000),
    days=st.integers(-200_000, 200_000),
)
def test_days_are_those_of_the_gregorian_calendar(shared_pool, seconds, days):
    source = f"return time.in_zone(time.add({seconds}, {{days = {days}}}), 'UTC').iso"
    expected = (datetime.fromtimestamp(seconds, UTC) + timedelta(days=days)).isoformat()
    assert run_in(shared_pool, source).reply.body.decode() == expected


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("time.add('0', {})", "time.add: number expected, got string"),
        ("time.add(0/0, {})", "time.add: a time from the years 0000 to 9999 expected"),
        ("time.add(0, 1)", "time.add: amounts: table expected, got number"),
        ("time.add(0, {day = 1})", "time.add: unknown unit day"),
        ("time.add(0, {days = '1'})", "time.add: days: number expected, got string"),
        ("time.add(0, {months = 0.5})", "time.add: months: a whole number expected"),
        ("time.add(0, {days = 1e300})", "time.add: days: the number is too large"),
        ("time.add(0, {days = 0/0})", "time.add: days: the number is too large"),
        ("time.add(0, {years = 9000})", "time.add: the result is not in the years 0000 to 9999"),
        ("time.in_zone(0)", "time.in_zone: zone: string expected, got nil"),
        ("time.in_zone(0, 'Mars/Base')", 'time.in_zone: unknown time zone "Mars/Base"'),
        ("time.in_zone(0, '../UTC')", 'time.in_zone: unknown time zone "../UTC"'),
        ("time.in_zone(1e300, 'UTC')", "time.in_zone: a time from the years 0000 to 9999 expected"),
        ("time.in_zone(-62167219200, 'UTC')", "time.in_zone: the time is out of range"),
    ],
)
def test_a_wrong_argument_is_named(fail, call, problem):
    assert fail(f"local x = {call}") == f"demo:1: {problem}"


def test_local_time_has_the_fields_of_os_date_and_the_offset(evaluate):
    source = "return time.in_zone(time.parse('2026-07-20T22:30:05.9Z'), 'Europe/Berlin')"
    assert json.loads(evaluate(source)) == {
        "year": 2026,
        "month": 7,
        "day": 21,
        "hour": 0,
        "min": 30,
        "sec": 5,
        "wday": 3,
        "yday": 202,
        "isdst": True,
        "offset": 7200,
        "abbreviation": "CEST",
        "iso": "2026-07-21T00:30:05+02:00",
    }


@given(
    seconds=st.integers(-5_000_000_000, 20_000_000_000),
    zone=st.sampled_from(
        ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
    ),
)
def test_local_time_is_that_of_the_iana_database(shared_pool, seconds, zone):
    moment = datetime.fromtimestamp(seconds, ZoneInfo(zone))
    source = f"local t = time.in_zone({seconds}, '{zone}') return {{t.iso, t.yday, t.offset}}"
    found = json.loads(run_in(shared_pool, source).reply.body)
    yday = moment.timetuple().tm_yday
    offset = int((moment.replace(tzinfo=UTC) - moment).total_seconds())
    assert found == [moment.isoformat()[:22] + found[0][22:], yday, offset]


def test_a_server_without_the_database_says_so(monkeypatch):
    monkeypatch.setattr(operations.zoneinfo, "TZPATH", ("/nonexistent",))
    operations.zone_files.cache_clear()
    answer = operations.offset_at(0, b"UTC")
    operations.zone_files.cache_clear()
    assert answer == (False, b"this server has no time zone database")
