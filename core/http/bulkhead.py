"""Concurrency limits within one process (the bulkhead pattern): a full bulkhead refuses."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest

from core.http.problems import Problem, ProblemCode
from core.metrics.instruments import BULKHEAD_REFUSALS
from core.waiting import return_pooled_connection

# The attribute of a request that holds its place.
_PLACE = "_place_in_bulkhead"
_RETRY_AFTER_SECONDS = 1


class BulkheadFullError(Exception):
    """All places, or the key's share of them, are taken. Nothing was done."""

    def __init__(self, name: str, retry_after_seconds: int) -> None:
        super().__init__(name)
        self.name = name
        self.retry_after_seconds = retry_after_seconds


class Bulkhead:
    """Admits ``limit`` holders at once in this process, and ``limit_per_key`` with the same key.

    A key names one tenant or client, such as an organisation's id or a client's network.

    When it is full, up to ``max_waiting`` callers, at most half of them with the same key, block
    for up to ``wait_seconds``; others are refused at once. A caller that does not wait is also
    refused while a waiting caller could take the free place.

    Thread-safe. Counts refusals by ``name``.
    """

    def __init__(
        self,
        name: str,
        *,
        limit: int,
        limit_per_key: int | None = None,
        max_waiting: int = 0,
        wait_seconds: float = 0,
    ) -> None:
        if limit < 1 or (limit_per_key is not None and limit_per_key < 1):
            raise ValueError("a bulkhead needs at least one place")
        self._name = name
        self._limit = limit
        self._limit_per_key = limit_per_key or limit
        self._max_waiting = max_waiting
        self._max_waiting_per_key = max(1, max_waiting // 2)
        self._wait_seconds = wait_seconds
        self._freed = threading.Condition()
        self._waiting: Counter[str] = Counter()
        self._held = 0
        # Places held by key; keys without places have no entry.
        self._held_by_key: dict[str, int] = {}

    @property
    def held(self) -> int:
        return self._held

    @property
    def waiting(self) -> int:
        return self._waiting.total()

    @contextmanager
    def place(self, key: str = "", *, waits: bool = True) -> Iterator["Place"]:
        """Hold a place for the length of the block. Raises ``BulkheadFullError``."""
        self._take(key, waits)
        try:
            yield Place(self, key)
        finally:
            self._give_back(key)

    def _take(self, key: str, waits: bool) -> None:
        with self._freed:
            if self._is_admitted(key, waits):
                self._hold(key)
                return
        BULKHEAD_REFUSALS.labels(self._name).inc()
        raise BulkheadFullError(self._name, _RETRY_AFTER_SECONDS)

    def _hold(self, key: str) -> None:
        self._held += 1
        self._held_by_key[key] = self._held_by_key.get(key, 0) + 1

    def _is_admitted(self, key: str, waits: bool) -> bool:
        if waits:
            return self._has_place(key) or self._wait_for_place(key)
        return self._has_place(key) and not any(map(self._has_place, self._waiting))

    def _has_place(self, key: str) -> bool:
        of_key = self._held_by_key.get(key, 0)
        return self._held < self._limit and of_key < self._limit_per_key

    def _wait_for_place(self, key: str) -> bool:
        is_full = self._waiting.total() >= self._max_waiting
        if is_full or self._waiting[key] >= self._max_waiting_per_key:
            return False
        self._waiting[key] += 1
        return_pooled_connection()
        try:
            return self._freed.wait_for(lambda: self._has_place(key), self._wait_seconds)
        finally:
            self._waiting -= Counter([key])

    def _give_back(self, key: str) -> None:
        with self._freed:
            self._held -= 1
            left = self._held_by_key.pop(key) - 1
            if left:
                self._held_by_key[key] = left
            self._freed.notify_all()


class Place:
    """A held place of a bulkhead."""

    __slots__ = ("_bulkhead", "_key")

    def __init__(self, bulkhead: Bulkhead, key: str) -> None:
        self._bulkhead = bulkhead
        self._key = key

    @contextmanager
    def left_to_others(self) -> Iterator[None]:
        """Release the place during a wait that another limit bounds.

        The place is taken again without waiting, above the limits if necessary, so that a request
        that has begun can finish.
        """
        self._bulkhead._give_back(self._key)
        try:
            yield
        finally:
            with self._bulkhead._freed:
                self._bulkhead._hold(self._key)


def busy_problem(error: BulkheadFullError) -> Problem:
    """The problem ``busy`` (503) with ``Retry-After``."""
    return Problem(
        ProblemCode.BUSY,
        "Too many requests of this kind are being handled. Nothing was done; try again.",
        headers={"Retry-After": str(error.retry_after_seconds)},
    )


def has_place(request: HttpRequest) -> bool:
    return hasattr(request, _PLACE)


def remember_place(request: HttpRequest, place: Place) -> None:
    setattr(request, _PLACE, place)


@contextmanager
def place_left_to_others(request: HttpRequest) -> Iterator[None]:
    """Release the request's place during a wait that another limit bounds."""
    place: Place = getattr(request, _PLACE)
    with place.left_to_others():
        yield
