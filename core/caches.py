"""Caches of one process: objects that are built once, and values that expire."""

import threading
import time
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

Given = ParamSpec("Given")
Built = TypeVar("Built")
Key = TypeVar("Key")
Value = TypeVar("Value")


class _BuiltOnce(Generic[Given, Built]):
    def __init__(self, build: Callable[Given, Built]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._built: dict[Any, Built] = {}

    def __call__(self, *arguments: Given.args, **keywords: Given.kwargs) -> Built:
        key = (arguments, tuple(sorted(keywords.items())))
        try:
            return self._built[key]
        except KeyError:
            with self._lock:
                if key not in self._built:
                    self._built[key] = self._build(*arguments, **keywords)
                return self._built[key]

    def cache_clear(self) -> None:
        self._built.clear()


def built_once(build: Callable[Given, Built]) -> _BuiltOnce[Given, Built]:
    """Decorator like ``functools.cache`` that never builds the same object in two threads.

    ``functools.cache`` calls the function in every thread that comes before the first result, so
    each builds an object of its own, and may meet half-finished imports. Arguments must be
    hashable.
    """
    built: _BuiltOnce[Given, Built] = _BuiltOnce(build)
    update_wrapper(built, build)
    return built


class BoundedCache(Generic[Key, Value]):
    """Values of at most ``most`` keys, each until a time of ``time.monotonic``.

    A new key beyond ``most`` first clears the cache. Thread-safe; threads that put new keys at once
    may exceed ``most`` by one each.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[Key, tuple[Value, float]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """The value; ``None`` if there is none or it has expired."""
        entry = self._entries.get(key)
        return None if entry is None or entry[1] <= time.monotonic() else entry[0]

    def put(self, key: Key, value: Value, *, until: float) -> None:
        if len(self._entries) >= self._most and key not in self._entries:
            self._entries.clear()
        self._entries[key] = value, until

    def forget(self, key: Key) -> None:
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()
