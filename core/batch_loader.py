"""Batch loading: green threads that load at the same time share a call, such as one SELECT."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from core.green_threads import WakeUp, current, give_way

logger = logging.getLogger(__name__)

Key = TypeVar("Key")
Value = TypeVar("Value")


class BatchLoader(Generic[Key, Value]):
    """Loads the keys of all green threads that ask in the same pass of their scheduler.

    If the shared call fails, each key is loaded alone, so that one key's failure is nobody else's.
    Outside of green threads, each key is loaded alone too.
    """

    def __init__(self, load: Callable[[list[Key]], list[Value]], *, max_keys: int) -> None:
        """``load`` returns a value for each key."""
        self._load = load
        self._max_keys = max_keys
        # Green threads of different threads cannot wake each other without a lock.
        self._of_thread = threading.local()

    def load(self, key: Key) -> Value:
        if current() is None:
            return self._load([key])[0]
        batch: _Batch[Key, Value] | None = getattr(self._of_thread, "batch", None)
        if batch is not None and len(batch.keys) < self._max_keys:
            place = batch.join(key)
        else:
            place = 0
            batch = self._of_thread.batch = _Batch(key)
            # Others join the batch meanwhile.
            give_way()
            if self._of_thread.batch is batch:
                self._of_thread.batch = None
            if len(batch.keys) == 1:
                return self._load([key])[0]
            batch.lead(self._load)
        if batch.values is None:
            return self._load([key])[0]
        return batch.values[place]


class _Batch(Generic[Key, Value]):
    """The keys of one call, which the first caller makes; ``values`` stay None if it fails."""

    def __init__(self, key: Key) -> None:
        self.keys = [key]
        self.values: list[Value] | None = None
        self._followers: list[WakeUp] = []

    def join(self, key: Key) -> int:
        """Returns the key's place once the call was made."""
        place = len(self.keys)
        self.keys.append(key)
        is_called = WakeUp()
        self._followers.append(is_called)
        is_called.wait()
        return place

    def lead(self, load: Callable[[list[Key]], list[Value]]) -> None:
        try:
            self.values = load(self.keys)
        except Exception as error:  # noqa: BLE001 (each key is loaded again)
            reason = " ".join(str(error).split())
            logger.warning("Loading %d keys alone, not together: %s", len(self.keys), reason)
        finally:
            for follower in self._followers:
                follower.set()
