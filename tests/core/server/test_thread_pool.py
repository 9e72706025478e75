"""A web worker's threads where the system refuses more of them."""

import threading
from collections.abc import Iterator

import pytest

from core.server.worker import SteadyThreadPool

# The system has no stack of that size, and so no thread.
MORE_THAN_ANY_ADDRESS_SPACE = 1 << 46


@pytest.fixture
def pool() -> Iterator[SteadyThreadPool]:
    with SteadyThreadPool(4) as pool:
        yield pool


@pytest.fixture
def no_more_threads(pool: SteadyThreadPool) -> Iterator[None]:
    pool.start_first_thread()
    before = threading.stack_size(MORE_THAN_ANY_ADDRESS_SPACE)
    yield
    threading.stack_size(before)


def test_calls_wait_for_the_only_thread_that_there_is(
    pool: SteadyThreadPool, no_more_threads: None
) -> None:
    may_end = threading.Event()
    first = pool.submit(may_end.wait, 60)
    others = [pool.submit(threading.get_ident) for _ in range(8)]
    may_end.set()

    assert first.result(60)
    assert len({each.result(60) for each in others}) == 1


def test_a_pool_without_any_thread_refuses_calls(pool: SteadyThreadPool) -> None:
    before = threading.stack_size(MORE_THAN_ANY_ADDRESS_SPACE)
    try:
        with pytest.raises(RuntimeError, match="thread"):
            pool.submit(int)
    finally:
        threading.stack_size(before)

    assert pool.submit(int).result(60) == 0
