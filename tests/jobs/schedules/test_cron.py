"""Cron expressions and their ticks, over changes of daylight saving time."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules.cron import (
    InvalidCronError,
    UnknownTimeZoneError,
    clean_cron,
    clean_time_zone,
    cron_in_words,
    known_time_zones,
    newest_ticks,
    next_ticks,
    ticks_after,
    ticks_between,
)

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local_ticks(cron: str, zone: str, day: str) -> str:
    """The ticks of a local day, with their offsets."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end = start + timedelta(days=1)
    ticks = ticks_between(cron, zone, start - timedelta(seconds=1), end - timedelta(seconds=1))
    return " ".join(tick.astimezone(ZoneInfo(zone)).strftime("%H:%M%z") for tick in ticks)


# --- Expressions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * *",
        "* * * *",
        "* * * * * *",
        "@reboot",
        "@",
        "@daily *",
        "@wee\u212aly",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5-1 * * * *",
        "* * * * MON#6",
        "* * * * MON#0",
        "* * * * FRI-MON",
        "* * ? * *",
        "* * L/2 * *",
        "-1 * * * *",
        "1.5 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 */29 2 THU#5",
        "* * * * \u017fUN",
        "\u0661 * * * *",
        "* * * * *\0",
        "9" * 5_000 + " * * * *",
        "* " * 100 + "*",
    ],
)
def test_what_is_no_expression_or_never_comes_is_refused(cron: str) -> None:
    with pytest.raises(InvalidCronError) as refused:
        clean_cron(cron)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("shorthand", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        (" @Hourly ", "0 * * * *"),
    ],
)
def test_shorthand_is_stored_as_its_fields(shorthand: str, fields: str) -> None:
    assert clean_cron(shorthand) == fields
    assert clean_cron(fields) == fields


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("61 9 * * *", "The minute is not valid, or never comes. Allowed: 0 to 59."),
        ("0 24 * * *", "The hour is not valid, or never comes. Allowed: 0 to 23."),
        (
            "0 0 30 2 *",
            "The day of month is not valid, or never comes. Allowed: 1 to 31, L and LW.",
        ),
        ("0 0 1 13 *", "The month is not valid, or never comes. Allowed: 1 to 12 or JAN to DEC."),
        (
            "0 9 * * MO",
            (
                "The day of week is not valid, or never comes. Allowed: 0 to 7 or SUN to SAT, "
                "where 0 and 7 are Sunday."
            ),
        ),
        (
            "0 0",
            "Enter five fields: minute, hour, day of month, month and day of week. This has 2.",
        ),
        (
            "@reboot",
            (
                "Enter one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, "
                "or five fields."
            ),
        ),
    ],
)
def test_an_error_names_the_field_and_what_it_may_be(cron: str, message: str) -> None:
    with pytest.raises(InvalidCronError) as refused:
        clean_cron(cron)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("cron", "ticks"),
    [
        ("*/15 * * * *", ["2026-11-23 00:15", "2026-11-23 00:30"]),
        ("0 6 * * mon-fri", ["2026-11-23 06:00", "2026-11-24 06:00"]),
        ("30 4 1,15 * *", ["2026-12-01 04:30", "2026-12-15 04:30"]),
        ("30 4 1 * FRI", ["2026-11-27 04:30", "2026-12-01 04:30"]),
        ("0 0 */2 * SUN", ["2026-11-29 00:00", "2026-12-13 00:00"]),
        ("0 12 L * *", ["2026-11-30 12:00", "2026-12-31 12:00"]),
        ("0 12 LW * *", ["2026-11-30 12:00", "2026-12-31 12:00"]),
        ("0 12 * * 5L", ["2026-11-27 12:00", "2026-12-25 12:00"]),
        ("0 9 * * MON#2", ["2026-12-14 09:00", "2027-01-11 09:00"]),
        ("0 0 29 feb *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 * * 7", ["2026-11-29 00:00", "2026-12-06 00:00"]),
    ],
)
def test_ticks_are_those_of_debian(cron: str, ticks: list[str]) -> None:
    assert next_ticks(cron, "UTC", at("2026-11-23 00:00"), 2) == [at(tick) for tick in ticks]


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("*/15 * * * *", "Every 15 minutes"),
        ("*/7 * * * *", "Every seventh minute of every hour"),
        ("0 6 * * MON-FRI", "At 06:00 on Monday through Friday"),
        ("@daily", "At 00:00 every day"),
        ("30 17 * * 5L", "At 17:30 on the last Friday of the month"),
    ],
)
def test_expressions_are_said_in_a_sentence(cron: str, words: str) -> None:
    assert cron_in_words(cron) == words


def test_spaces_and_case_do_not_matter() -> None:
    assert clean_cron("  0  9\t* * mon#2 ") == "0 9 * * MON#2"


def test_a_tick_is_later_than_the_moment_before_it() -> None:
    moment = at("2026-11-23 10:00")
    assert next_ticks("0 * * * *", "UTC", moment, 1) == [at("2026-11-23 11:00")]
    just_before = moment - timedelta(microseconds=1)
    assert next_ticks("0 * * * *", "UTC", just_before, 1) == [moment]


# --- Time zones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zone", ["", "europe/berlin", "../../etc/passwd", "/etc/localtime", "localtime", "Mars", "\0"]
)
def test_a_zone_is_a_known_name_and_not_a_path(zone: str) -> None:
    with pytest.raises(UnknownTimeZoneError):
        clean_time_zone(zone)


def test_the_zones_of_the_database_are_known() -> None:
    assert {BERLIN, NEW_YORK, LORD_HOWE, "UTC", "Asia/Kathmandu"} <= known_time_zones()


# --- Daylight saving time: a fixed time -----------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "zone", "day", "ticks"),
    [
        # 02:00 to 03:00 is skipped.
        ("30 2 * * *", BERLIN, "2027-03-28", "03:00+0200"),
        ("0,30 2 * * *", BERLIN, "2027-03-28", "03:00+0200"),
        ("30 2,3 * * *", BERLIN, "2027-03-28", "03:00+0200 03:30+0200"),
        ("30 1,3 * * *", BERLIN, "2027-03-28", "01:30+0100 03:30+0200"),
        # 02:00 to 03:00 comes twice.
        ("30 2 * * *", BERLIN, "2027-10-31", "02:30+0200"),
        ("0 1-4 * * *", BERLIN, "2027-10-31", "01:00+0200 02:00+0200 03:00+0100 04:00+0100"),
        # 02:00 to 03:00 is skipped, 01:00 to 02:00 comes twice.
        ("30 2 * * *", NEW_YORK, "2027-03-14", "03:00-0400"),
        ("30 1 * * *", NEW_YORK, "2027-11-07", "01:30-0400"),
        # 02:00 to 02:30 is skipped, 01:30 to 02:00 comes twice.
        ("15 2 * * *", LORD_HOWE, "2027-10-03", "02:30+1100"),
        ("45 2 * * *", LORD_HOWE, "2027-10-03", "02:45+1100"),
        ("45 1 * * *", LORD_HOWE, "2027-04-04", "01:45+1100"),
        ("15 2 * * *", LORD_HOWE, "2027-04-04", "02:15+1030"),
    ],
)
def test_a_fixed_time_runs_once(cron: str, zone: str, day: str, ticks: str) -> None:
    assert local_ticks(cron, zone, day) == ticks


# --- Daylight saving time: by the clock -----------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "zone", "day", "ticks"),
    [
        ("*/30 1-3 * * *", BERLIN, "2027-03-28", "01:00+0100 01:30+0100 03:00+0200 03:30+0200"),
        ("*/30 2 * * *", BERLIN, "2027-03-28", ""),
        ("*/30 2 * * *", BERLIN, "2027-10-31", "02:00+0200 02:30+0200 02:00+0100 02:30+0100"),
        ("*/30 2 * * *", NEW_YORK, "2027-03-14", ""),
        ("*/30 1 * * *", NEW_YORK, "2027-11-07", "01:00-0400 01:30-0400 01:00-0500 01:30-0500"),
        ("*/15 2 * * *", LORD_HOWE, "2027-10-03", "02:30+1100 02:45+1100"),
        ("*/30 3 * * *", LORD_HOWE, "2027-10-03", "03:00+1100 03:30+1100"),
        ("*/30 1 * * *", LORD_HOWE, "2027-04-04", "01:00+1100 01:30+1100 01:30+1030"),
        ("*/30 2 * * *", LORD_HOWE, "2027-04-04", "02:00+1030 02:30+1030"),
    ],
)
def test_a_star_follows_the_clock(cron: str, zone: str, day: str, ticks: str) -> None:
    assert local_ticks(cron, zone, day) == ticks


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, "2027-03-28", 23),
        (BERLIN, "2027-10-31", 25),
        (NEW_YORK, "2027-03-14", 23),
        (NEW_YORK, "2027-11-07", 25),
        (LORD_HOWE, "2027-10-03", 23.5),
        (LORD_HOWE, "2027-04-04", 24.5),
    ],
)
def test_every_minute_is_every_minute(zone: str, day: str, hours: float) -> None:
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end = (start + timedelta(days=1)).astimezone(UTC)
    before = start.astimezone(UTC) - timedelta(minutes=1)
    ticks = list(ticks_between("* * * * *", zone, before, end - timedelta(minutes=1)))
    assert ticks == [start.astimezone(UTC) + timedelta(minutes=n) for n in range(int(hours * 60))]


def test_a_midnight_that_is_skipped() -> None:
    # From 24:00 on Saturday, clocks in Santiago show 01:00 on Sunday.
    before = at("2027-09-05 03:59")
    fixed = next_ticks("0 0 * * *", "America/Santiago", before, 2)
    assert fixed == [at("2027-09-05 04:00"), at("2027-09-06 03:00")]
    by_clock = next_ticks("*/30 0 * * *", "America/Santiago", before, 1)
    assert by_clock == [at("2027-09-06 03:00")]


def test_a_fixed_time_that_has_passed_does_not_come_back_in_the_repeated_hour() -> None:
    second_0215 = at("2027-10-31 01:15")
    tomorrow = at("2027-11-01 01:30")
    assert next_ticks("30 2 * * *", BERLIN, second_0215, 1) == [tomorrow]


@pytest.mark.parametrize(
    ("zone", "first", "second"),
    [
        (BERLIN, "2027-10-31 00:45", "2027-10-31 01:00"),
        (NEW_YORK, "2027-11-07 05:45", "2027-11-07 06:00"),
        (LORD_HOWE, "2027-04-03 14:45", "2027-04-03 15:00"),
    ],
)
def test_a_search_from_the_first_of_two_equal_hours_finds_the_second(
    zone: str, first: str, second: str
) -> None:
    assert next_ticks("*/15 * * * *", zone, at(first), 1) == [at(second)]


_MINUTES = st.sampled_from(["*", "*/7", "0", "15", "30,45", "5-50/15"])
_HOURS = st.sampled_from(["*", "*/2", "1", "2", "1-3", "0,2,23"])
_DAYS = st.sampled_from(["*", "28", "L", "*/3"])
_WEEKDAYS = st.sampled_from(["*", "SUN", "MON#1", "5L"])
_MOMENTS = st.datetimes(
    datetime(2026, 1, 1),  # noqa: DTZ001
    datetime(2029, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(_MINUTES, _HOURS, _DAYS, _WEEKDAYS, _MOMENTS, st.sampled_from([BERLIN, NEW_YORK]))
def test_whole_hours_of_daylight_saving_are_as_with_cronsim(
    minute: str, hour: str, day: str, weekday: str, after: datetime, zone: str
) -> None:
    cron = f"{minute} {hour} {day} * {weekday}"
    local = after.replace(microsecond=0).astimezone(ZoneInfo(zone))
    expected = (tick.astimezone(UTC) for tick in CronSim(cron, local))
    # cronsim may begin in the past when it starts in the second of two equal hours.
    later = (tick for tick in expected if tick > local)
    assert next_ticks(cron, zone, local, 12) == list(islice(later, 12))


@given(_MINUTES, _HOURS, _DAYS, _MOMENTS, st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE]))
def test_ticks_do_not_depend_on_where_the_search_starts(
    minute: str, hour: str, day: str, after: datetime, zone: str
) -> None:
    cron = f"{minute} {hour} {day} * *"
    ticks = list(islice(ticks_after(cron, zone, after), 8))
    assert ticks == sorted(set(ticks))
    assert [next_ticks(cron, zone, tick, 1)[0] for tick in ticks[:-1]] == ticks[1:]


@given(_MINUTES, _HOURS, _DAYS, _MOMENTS, st.sampled_from([BERLIN, LORD_HOWE]), st.integers(1, 9))
def test_the_newest_ticks_are_the_last_of_all(
    minutes: str, hours: str, days: str, after: datetime, zone: str, count: int
) -> None:
    cron, until = f"{minutes} {hours} {days} * *", after + timedelta(days=7)

    newest = newest_ticks(cron, zone, after, until, count)

    assert newest == list(ticks_between(cron, zone, after, until))[-count:]
