"""A hook takes so many calls a minute, and a burst at once, on all nodes together."""

from typing import Any

import pytest
from django.test import override_settings

from accounts.models import RateCounter
from accounts.rate_limits import limiter
from accounts.rate_limits.counters import forget_ended_counters
from core.errors import RateLimitedError
from hooks.flows.run_call import check_call_limit
from hooks.models import Hook
from tests.concurrency import at_once
from tests.factories import make_hook

pytestmark = pytest.mark.django_db


def is_taken(hook: Hook, per_minute: int = 60, burst: int = 3) -> bool:
    try:
        check_call_limit(hook.pk, calls_per_minute=per_minute, burst=burst)
    except RateLimitedError:
        return False
    return True


def pass_time(seconds: float) -> None:
    """The bucket is that much fuller, as it would be by then."""
    limiter._known_full.clear()
    [bucket] = RateCounter.objects.all()
    RateCounter.objects.update(ends_at=bucket.ends_at - int(seconds * 1_000_000))


def test_a_burst_is_taken_and_the_next_call_refused(hook: Hook) -> None:
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
    hook: Hook, per_minute: int, burst: int, seconds: int
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
    before = RateCounter.objects.get().ends_at
    limiter._known_full.clear()

    assert not is_taken(hook)
    assert RateCounter.objects.get().ends_at == before


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
    assert not RateCounter.objects.exists()


def test_upkeep_forgets_full_buckets(hook: Hook) -> None:
    assert is_taken(hook)
    kept = forget_ended_counters()
    pass_time(62)

    assert (kept, forget_ended_counters()) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_of_a_hundred_calls_at_once_the_burst_is_taken(hook: Hook) -> None:
    taken = at_once(100, lambda number: is_taken(hook, 1, 10))

    assert taken.count(True) == 10
