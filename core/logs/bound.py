"""The log context: values that every log line of the current request, task or run includes.

It is one context variable. structlog uses one for each name, which takes three times as long.
Threads and green threads start with an empty context.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

_bound: ContextVar[Mapping[str, Any]] = ContextVar("bound", default=MappingProxyType({}))


def bind(**values: Any) -> None:
    """Adds the values to the context, until ``unbind_all``."""
    _bound.set({**_bound.get(), **values})


@contextmanager
def binding(**values: Any) -> Iterator[None]:
    """Adds the values to the context for the length of the block."""
    token = _bound.set({**_bound.get(), **values})
    try:
        yield
    finally:
        _bound.reset(token)


def bind_only(**values: Any) -> None:
    """Replaces the context by the values."""
    _bound.set(values)


def unbind_all() -> None:
    _bound.set({})


def bound() -> Mapping[str, Any]:
    return _bound.get()


def add_bound(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Processor for structlog: adds the context to the event, whose own values win."""
    for name, value in _bound.get().items():
        event.setdefault(name, value)
    return event
