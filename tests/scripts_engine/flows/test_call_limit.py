"""A hook takes so many calls a minute, and a burst at once, on all nodes together."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from accounts.models import Organisation, TokenBucket
from accounts.rate_limits import limiter, token_bucket
from accounts.rate_limits.token_bucket import forget_full_buckets
from core.errors import RateLimitedError
from scripts_engine.flows.call_limit import check_call_limit
from scripts_engine.models import Hook
from tests.concurrency import at_once
from tests.factories import make_hook, make_script
from tests.private_servers import private_redis

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_known_buckets() -> Iterator[None]:
    token_bucket._known_empty.clear()
    yield
    token_bucket._known_empty.clear()


@pytest.fixture
def hook(acme: Organisation) -> Hook:
    return make_hook(make_script(acme)).hook


@pytest.fixture(params=["database", "Redis"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "database":
        yield request.param
        return
    with private_redis() as redis, override_settings(REDIS_URL=redis.url):
        yield request.param


def is_taken(hook: Hook, per_minute: int = 60, burst: int = 3) -> bool:
    try:
        check_call_limit(hook.pk, calls_per_minute=per_minute, burst=burst)
    except RateLimitedError:
        return False
    return True


def pass_time(seconds: float) -> None:
    """The bucket is that much fuller, as it would be by then."""
    token_bucket._known_empty.clear()
    [bucket] = TokenBucket.objects.all()
    TokenBucket.objects.update(full_at=bucket.full_at - int(seconds * 1_000_000))


def test_a_burst_is_taken_and_the_next_call_refused(hook: Hook, store: str) -> None:
    other = make_hook(hook.script, "other").hook

    assert [is_taken(hook) for _ in range(5)] == [True, True, True, False, False]
    assert is_taken(other)


def test_one_token_comes_each_interval_up_to_the_burst(hook: Hook) -> None:
    assert [is_taken(hook) for _ in range(4)] == [True, True, True, False]
    pass_time(1.05)
    after_one = [is_taken(hook) for _ in range(2)]
    pass_time(3600)

    assert after_one == [True, False]
    assert [is_taken(hook) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("per_minute", "burst", "seconds"), [(1, 1, 60), (60, 3, 1), (600, 1, 1), (7, 1, 9)]
)
def test_a_refusal_says_when_the_next_token_comes(
    hook: Hook, store: str, per_minute: int, burst: int, seconds: int
) -> None:
    first, *_ = [is_taken(hook, per_minute, burst) for _ in range(burst)]
    with pytest.raises(RateLimitedError) as refused:
        check_call_limit(hook.pk, calls_per_minute=per_minute, burst=burst)

    assert first
    assert refused.value.retry_after_seconds == seconds


def test_a_known_empty_bucket_is_refused_without_asking(
    hook: Hook, django_assert_num_queries: Any
) -> None:
    assert [is_taken(hook, 1, 1) for _ in range(2)] == [True, False]
    with django_assert_num_queries(0):
        refused = not is_taken(hook, 1, 1)

    assert refused
    assert is_taken(hook, 1, 2)


def test_a_refused_call_takes_no_token(hook: Hook) -> None:
    assert [is_taken(hook) for _ in range(3)] == [True] * 3
    before = TokenBucket.objects.get().full_at
    token_bucket._known_empty.clear()

    assert not is_taken(hook)
    assert TokenBucket.objects.get().full_at == before


def test_a_bucket_from_before_the_clock_was_set_back_is_started_again(hook: Hook) -> None:
    assert [is_taken(hook) for _ in range(4)] == [True, True, True, False]
    pass_time(-3600)

    assert [is_taken(hook) for _ in range(4)] == [True, True, True, False]


def test_a_hook_without_a_limit_asks_nothing(hook: Hook, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        check_call_limit(hook.pk, calls_per_minute=None, burst=0)


@override_settings(IS_RATE_LIMITED=False)
def test_load_tests_switch_the_limit_off(hook: Hook) -> None:
    assert [is_taken(hook, 1, 1) for _ in range(3)] == [True] * 3
    assert not TokenBucket.objects.exists()


def test_the_database_limits_while_redis_does_not_answer(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    with private_redis() as redis, override_settings(REDIS_URL=redis.url):
        assert is_taken(hook, 1, 1)
        redis.stop()
        taken = [is_taken(hook, 1, 1) for _ in range(3)]
        redis.start()
    limiter._circuit_of.cache_clear()

    assert taken == [True, False, False]
    assert TokenBucket.objects.count() == 1
    assert "Redis does not answer" in caplog.text


def test_upkeep_forgets_full_buckets(hook: Hook) -> None:
    assert is_taken(hook)
    kept = forget_full_buckets()
    pass_time(62)

    assert (kept, forget_full_buckets()) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_of_a_hundred_calls_at_once_the_burst_is_taken(hook: Hook, store: str) -> None:
    taken = at_once(100, lambda number: is_taken(hook, 1, 10))

    assert taken.count(True) == 10
