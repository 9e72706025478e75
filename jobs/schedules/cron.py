"""Ticks of cron expressions in time zones, over changes of daylight saving time.

cronsim parses expressions and finds the next match on a clock without a time zone; this module maps
matches to moments. cronsim's own mapping misses ticks in zones that change by half an hour, and
returns moments in the past when it starts inside a repeated hour.
"""

import re
import zoneinfo
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MAX_CRON_CHARACTERS = 200
# Any moment: what only reads an expression starts from one.
_CLOCK = datetime(2000, 1, 1)  # noqa: DTZ001  (a clock without a time zone)

SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_CRON = re.compile(r"[0-9A-Za-z*,/#-]+( [0-9A-Za-z*,/#-]+){4}")
# Steps that divide the hour: with others, the last interval of an hour is shorter.
_EVERY_FEW_MINUTES = re.compile(r"\*/(2|3|4|5|6|10|12|15|20|30) \* \* \* \*")
_STEP_OF_LAST = re.compile("LW?/")
# Neither is a place: the server's own zone, and the placeholder for none.
_NOT_ZONES = frozenset({"localtime", "Factory"})
_MINUTE = timedelta(minutes=1)
_ALLOWED = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of month": "1 to 31, L and LW",
    "month": "1 to 12 or JAN to DEC",
    "day of week": "0 to 7 or SUN to SAT, where 0 and 7 are Sunday",
}


class InvalidCronError(Exception):
    """The expression is not one, or names a date that never comes. Never quotes the input."""


class UnknownTimeZoneError(Exception):
    """The server's time zone database has no such zone."""

    def __init__(self) -> None:
        super().__init__("Enter a time zone of the IANA database, for example Europe/Berlin.")


@cache
def known_time_zones() -> frozenset[str]:
    """The names of the server's time zones, as they are spelt there."""
    return frozenset(zoneinfo.available_timezones()) - _NOT_ZONES


@lru_cache(maxsize=1024)
def clean_cron(text: str) -> str:
    """The expression as it is stored: upper case, single spaces. Raises ``InvalidCronError``.

    A shorthand becomes its five fields, so that equal schedules are stored alike. Takes the five
    fields of Debian's cron, also ``L`` for the month's last day or, as ``5L``, its last Friday,
    ``LW`` for its last weekday, and ``MON#2`` for its second Monday.
    """
    if len(text) > MAX_CRON_CHARACTERS:
        raise InvalidCronError(f"Enter at most {MAX_CRON_CHARACTERS} characters.")
    cron = " ".join(text.split())
    if cron.startswith("@"):
        return _fields_of_shorthand(cron)
    number = len(cron.split())
    if number != 5:
        raise InvalidCronError(
            "Enter five fields: minute, hour, day of month, month and day of week. "
            f"This has {number}."
        )
    if not _CRON.fullmatch(cron):
        raise InvalidCronError("Enter numbers, names of months and days, and * , - / L # only.")
    cron = cron.upper()
    if _STEP_OF_LAST.search(cron):
        raise InvalidCronError("L and LW take no step.")
    try:
        next(CronSim(cron, _CLOCK))
    except CronSimError as error:
        # For example “Bad day-of-month”.
        field = str(error).removeprefix("Bad ").replace("-", " ")
        allowed = f" Allowed: {_ALLOWED[field]}." if field in _ALLOWED else ""
        raise InvalidCronError(f"The {field} is not valid, or never comes.{allowed}") from None
    except StopIteration:
        raise InvalidCronError("No date fits all fields.") from None
    return cron


def _fields_of_shorthand(text: str) -> str:
    fields = SHORTHANDS.get(text.lower()) if text.isascii() else None
    if fields is None:
        raise InvalidCronError(f"Enter one of {', '.join(SHORTHANDS)}, or five fields.")
    return fields


def cron_in_words(cron: str) -> str:
    """For example “At 06:00 on Monday through Friday”. Raises ``InvalidCronError``."""
    cleaned = clean_cron(cron)
    if every := _EVERY_FEW_MINUTES.fullmatch(cleaned):
        return f"Every {every[1]} minutes"
    return CronSim(cleaned, _CLOCK).explain()


def clean_time_zone(name: str) -> str:
    """Raises ``UnknownTimeZoneError``. Names are not paths: only known ones are ever opened."""
    if name not in known_time_zones():
        raise UnknownTimeZoneError
    return name


def next_ticks(cron: str, time_zone: str, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` ticks after that moment, in UTC; fewer if there are none in 50 years.

    Raises ``InvalidCronError`` or ``UnknownTimeZoneError``.
    """
    return list(islice(ticks_after(cron, time_zone, after), count))


def ticks_between(
    cron: str, time_zone: str, after: datetime, until: datetime
) -> Iterator[datetime]:
    """The ticks after the one moment and up to the other, in UTC."""
    for tick in ticks_after(cron, time_zone, after):
        if tick > until:
            return
        yield tick


def newest_ticks(
    cron: str, time_zone: str, after: datetime, until: datetime, count: int
) -> list[datetime]:
    """The last ``count`` ticks after the one moment and up to the other, oldest first.

    The search goes back in growing steps, because a week may have ten thousand ticks.
    """
    step = count * _MINUTE
    while True:
        start = max(after, until - step)
        found = list(ticks_between(cron, time_zone, start, until))
        if len(found) >= count or start == after:
            return found[-count:]
        step *= 2


def ticks_after(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    """The ticks after that moment, in UTC, earliest first.

    With ``*`` at the start of minute or hour, the wall clock decides: skipped times have no tick,
    repeated ones have two. Otherwise a time that is skipped has its tick right after, and a time
    that is repeated has one tick, the first.
    """
    expression = clean_cron(cron)
    zone = ZoneInfo(clean_time_zone(time_zone))
    minute, hour, *_ = expression.split()
    follows_clock = minute.startswith("*") or hour.startswith("*")
    matches = CronSim(expression, _clock_before(after, zone))
    found = _by_clock(matches, zone) if follows_clock else _once_each(matches, zone)
    previous = after.astimezone(UTC)
    for tick in found:
        if tick > previous:
            yield tick
            previous = tick


def _clock_before(after: datetime, zone: ZoneInfo) -> datetime:
    """The clock's time at that moment, or before the hour that it is about to repeat."""
    local = after.astimezone(zone)
    offset, other = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    clock = local.replace(tzinfo=None)
    return clock - abs(offset - other)


def _by_clock(matches: Iterator[datetime], zone: ZoneInfo) -> Iterator[datetime]:
    # Second occurrences, which follow the first ones of all repeated times.
    second: deque[datetime] = deque()
    for clock in matches:
        first, *later = _moments(clock, zone) or (None,)
        if first is not None:
            while second and second[0] < first:
                yield second.popleft()
            yield first
        second.extend(later)
    yield from second


def _once_each(matches: Iterator[datetime], zone: ZoneInfo) -> Iterator[datetime]:
    for match in matches:
        clock = match
        while not (moments := _moments(clock, zone)):
            clock += _MINUTE
        yield moments[0]


def _moments(clock: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """When the clock shows that time: once; never, where it is skipped; or twice."""
    found = []
    for fold in (0, 1):
        moment = clock.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        is_shown = moment.astimezone(zone).replace(tzinfo=None) == clock
        if is_shown and moment not in found:
            found.append(moment)
    return tuple(found)
