"""What host functions are made of: capabilities, which apps above register, and deadlines."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Protocol

from django.db import connection, transaction

# For administrators, if the run ends before a call does.
SCRIPT_TIMEOUT_HINT = "the timeout of the run is set on the page of its script"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run of a saved script, which will be recorded."""

    run_id: uuid.UUID
    script_id: uuid.UUID
    chain_depth: int
    """How many runs pushed one another until this one was pushed."""
    is_of_alert: bool = False
    """Whether what it pushes descends from an alert."""


class EffectRefusedError(Exception):
    """Another run was first, so the run fails with this message and nothing of it is stored."""


class Effect(Protocol):
    """What a script has asked for, which is stored if and only if its run succeeds."""

    @property
    def size_bytes(self) -> int: ...

    def store(self) -> None:
        """In the transaction that records the run. Raises ``EffectRefusedError``."""


class Function(NamedTuple):
    """How a function is called and shown. The first argument is what its calls are about."""

    arguments: int
    max_subject_bytes: int
    describe: Callable[[list[Any], Any], str]
    """How a call ended, from its arguments and its answer."""


class Capability(Protocol):
    """The functions of one run. ``recorded`` is ``None`` if the run leaves no record."""

    def __init__(self, organisation_id: uuid.UUID, recorded: RecordedRun | None) -> None: ...

    def functions(self) -> Mapping[str, Callable[..., Any]]: ...

    def effect(self, secrets: frozenset[bytes]) -> Effect | None:
        """What to store with the run, whose record hides these secrets."""

    def abandon(self) -> None:
        """Releases what the run has reserved, because it has failed."""


_registered: dict[type[Capability], Mapping[str, Function]] = {}


def register_capability(capability: type[Capability], functions: Mapping[str, Function]) -> None:
    _registered[capability] = functions


def registered_capabilities() -> Mapping[type[Capability], Mapping[str, Function]]:
    return _registered


def find_function(name: str) -> Function | None:
    """A registered function by its name, such as ``queue.push``."""
    return next((each[name] for each in _registered.values() if name in each), None)


def remaining(ends_at: float) -> float:
    """Seconds until ``ends_at``, in ``time.monotonic()``. Raises ``TimeoutError`` once past."""
    seconds = ends_at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


@contextmanager
def transaction_until(deadline: float) -> Iterator[None]:
    """A transaction that waits for locks until the deadline.

    Raises ``TimeoutError`` if the deadline has already passed.
    """
    lock_timeout_ms = ceil(remaining(deadline) * 1000)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # Applies until the end of the transaction.
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [str(lock_timeout_ms)])
            yield
        return
    usual_seconds = connection.lock_timeout_seconds  # type: ignore[attr-defined]
    connection.lock_timeout_seconds = min(lock_timeout_ms / 1000, usual_seconds)  # type: ignore[attr-defined]
    try:
        with transaction.atomic():
            yield
    finally:
        connection.lock_timeout_seconds = usual_seconds  # type: ignore[attr-defined]
