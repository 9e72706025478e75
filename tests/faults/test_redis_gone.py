"""Redis is stopped, frozen and restarted: the database counts meanwhile, without delays."""

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import RateWindow
from accounts.rate_limits import limiter, windows
from accounts.rate_limits.limiter import hit
from core.errors import RateLimitedError
from tests.eventually import eventually
from tests.private_servers import PrivateRedis, private_redis

pytestmark = pytest.mark.slow

OPEN_SECONDS = 1


@pytest.fixture(scope="module")
def redis_server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


@pytest.fixture(autouse=True)
def _counted_in_redis(
    redis_server: PrivateRedis, settings: Any, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    settings.REDIS_URL = redis_server.url
    monkeypatch.setattr(limiter, "REDIS_OPEN_SECONDS", OPEN_SECONDS)
    limiter._circuit_of.cache_clear()


def passes(name: str) -> bool:
    try:
        hit([windows.SMS_OF_NUMBER], name, "x")
    except RateLimitedError:
        return False
    return True


def is_counted_in_redis_again() -> bool:
    RateWindow.objects.all().delete()
    passes("probe")
    return RateWindow.objects.count() == 0


def test_the_database_counts_while_redis_is_gone_and_redis_afterwards(
    redis_server: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    before = passes("gone")
    with caplog.at_level(logging.INFO, "accounts.rate_limits"):
        redis_server.stop()
        meanwhile = [passes("gone") for _ in range(7)]
        redis_server.start()
        eventually(is_counted_in_redis_again)

    assert before is True
    assert meanwhile == [True] * 5 + [False] * 2
    [lost, back] = caplog.messages
    assert lost.startswith("Redis does not answer")
    assert back.startswith("Redis answers again")
    assert not any(record.exc_info for record in caplog.records)


def test_a_redis_that_hangs_is_waited_for_once_and_not_by_every_request(
    redis_server: PrivateRedis, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter, "REDIS_OPEN_SECONDS", 60)
    limiter._circuit_of.cache_clear()
    passes("hangs")
    redis_server.freeze()
    try:
        began = time.monotonic()
        outcomes = [passes("hangs") for _ in range(7)]
        lasted = time.monotonic() - began
    finally:
        redis_server.thaw()

    assert outcomes == [True] * 5 + [False] * 2
    # Seven requests ask eleven times: each would wait for half a second.
    assert lasted < 4 * limiter.REDIS_TIMEOUT_SECONDS
