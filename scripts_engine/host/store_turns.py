"""Of an organisation's writes to its store, one at a time is under way in a process.

On SQLite they wait for the one writer, on PostgreSQL for the organisation's row, there with a
connection each: the others wait here, where they hold up nobody else.
"""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from scripts_engine.host.deadline import remaining
from scripts_engine.sandbox.contract import HostCallError

# Then the script is told; it may try again, or go on without.
MAX_WAIT_SECONDS = 5.0


class _Turn:
    """``users`` have it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_turns: dict[uuid.UUID, _Turn] = {}
_guard = threading.Lock()


@contextmanager
def store_turn(organisation_id: uuid.UUID, deadline: float) -> Iterator[None]:
    """The organisation's turn to write, ``with`` this.

    Raises ``HostCallError`` when others of its runs keep it too long, ``TimeoutError`` when it is
    too late for the run.
    """
    with _guard:
        turn = _turns.setdefault(organisation_id, _Turn())
        turn.users += 1
    try:
        if not turn.lock.acquire(timeout=min(remaining(deadline), MAX_WAIT_SECONDS)):
            remaining(deadline)
            raise HostCallError("store: busy with other runs of the organisation; try again")
        try:
            yield
        finally:
            turn.lock.release()
    finally:
        with _guard:
            turn.users -= 1
            if not turn.users:
                del _turns[organisation_id]
