"""A thread-safe cache: the first caller builds an object while others wait for it."""

import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

Given = ParamSpec("Given")
Built = TypeVar("Built")


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
