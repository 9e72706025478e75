import json
import threading
from contextlib import ExitStack

import pytest
from django.db import connection
from django.test import RequestFactory

from core.http.bulkhead import Bulkhead, BulkheadFullError
from core.http.problem_handlers import UnavailableMiddleware
from tests.concurrency import at_once


def full(bulkhead: Bulkhead, key: str = "") -> bool:
    try:
        with bulkhead.place(key):
            return False
    except BulkheadFullError:
        return True


def test_a_full_bulkhead_refuses_until_a_place_is_released() -> None:
    bulkhead = Bulkhead("admin", limit=2)
    with bulkhead.place(), bulkhead.place():
        assert full(bulkhead)
    assert not full(bulkhead)
    assert bulkhead.held == 0


def test_one_key_does_not_take_the_places_of_another() -> None:
    bulkhead = Bulkhead("graphql", limit=3, limit_per_key=2)
    with bulkhead.place("acme"), bulkhead.place("acme"):
        assert full(bulkhead, "acme")
        assert not full(bulkhead, "globex")
    assert not full(bulkhead, "acme")


def test_a_place_is_released_during_a_wait_and_taken_again() -> None:
    bulkhead = Bulkhead("graphql", limit=1)
    with bulkhead.place("acme") as place:
        with place.left_to_others():
            assert bulkhead.held == 0
            others = ExitStack()
            others.enter_context(bulkhead.place("globex"))
        assert bulkhead.held == 2
        assert full(bulkhead, "initech")
        others.close()
        assert full(bulkhead, "initech")
    assert bulkhead.held == 0
    assert not full(bulkhead)


def test_a_place_is_released_after_an_error() -> None:
    bulkhead = Bulkhead("admin", limit=1)
    with pytest.raises(ZeroDivisionError), bulkhead.place():
        raise ZeroDivisionError
    assert bulkhead.held == 0


def test_concurrent_threads_do_not_exceed_the_limit() -> None:
    bulkhead = Bulkhead("graphql", limit=5)
    with ExitStack() as held:

        def enter(_number: int) -> bool:
            try:
                held.enter_context(bulkhead.place("acme"))
            except BulkheadFullError:
                return False
            return True

        assert sorted(at_once(40, enter)) == [False] * 35 + [True] * 5
    assert bulkhead.held == 0


def test_a_waiting_caller_gets_the_next_free_place() -> None:
    bulkhead = Bulkhead("graphql", limit=2, limit_per_key=1, max_waiting=20, wait_seconds=60)

    def enter(_number: int) -> int:
        with bulkhead.place("acme"):
            return bulkhead.held

    assert at_once(10, enter) == [1] * 10
    assert bulkhead.held == 0


def test_waiting_ends_at_the_time_limit() -> None:
    bulkhead = Bulkhead("graphql", limit=1, max_waiting=1, wait_seconds=0.01)
    with bulkhead.place("acme"):
        assert full(bulkhead, "globex")
        assert full(bulkhead, "globex")
    assert not full(bulkhead, "globex")


def test_callers_of_one_key_take_at_most_half_of_the_waiting_places() -> None:
    bulkhead = Bulkhead("graphql", limit=1, max_waiting=6, wait_seconds=60)
    refusals = threading.Semaphore(0)
    held = ExitStack()
    held.enter_context(bulkhead.place("acme"))

    def enter(number: int) -> str:
        if number == 0:
            assert all(refusals.acquire(timeout=30) for _ in range(6))
            held.close()
            return "leaves"
        if full(bulkhead, "acme"):
            refusals.release()
            return "refused"
        return "waited"

    assert sorted(at_once(10, enter)) == ["leaves"] + ["refused"] * 6 + ["waited"] * 3


@pytest.mark.parametrize("limits", [{"limit": 0}, {"limit": 2, "limit_per_key": 0}])
def test_a_bulkhead_without_a_place_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one place"):
        Bulkhead("admin", **limits)


def test_a_full_bulkhead_answers_503_with_retry_after() -> None:
    middleware = UnavailableMiddleware(lambda request: None)  # type: ignore[arg-type, return-value]
    request = RequestFactory().get("/session")

    response = middleware.process_exception(request, BulkheadFullError("graphql", 3))

    assert response is not None
    assert response.status_code == 503
    assert response["Retry-After"] == "3"
    assert json.loads(response.content)["code"] == "busy"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL is pooled")
@pytest.mark.django_db(transaction=True)
def test_a_waiting_thread_returns_its_pooled_connection() -> None:
    bulkhead = Bulkhead("graphql", limit=1, max_waiting=2, wait_seconds=0.01)
    connection.ensure_connection()

    with bulkhead.place("acme"):
        assert connection.connection is not None
        assert full(bulkhead, "globex")
    assert connection.connection is None
