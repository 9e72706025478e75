"""How code waits: one face for threads and for green threads, which give way while they wait.

Only ``core`` imports what is behind it.
"""

from core.waiting.green_threads import (
    READABLE,
    WRITABLE,
    BatchLoader,
    Bell,
    WakeUp,
    current,
    give_way,
    growing_pauses,
    in_thread,
    return_pooled_connection,
    sleep,
    start_in_thread,
    wait_for,
)
from core.waiting.scheduler import GreenLoop
from core.waiting.threads import Attempt, Bounded, DatabaseThreads, NoAnswer, NoThread

__all__ = [
    "READABLE",
    "WRITABLE",
    "Attempt",
    "BatchLoader",
    "Bell",
    "Bounded",
    "DatabaseThreads",
    "GreenLoop",
    "NoAnswer",
    "NoThread",
    "WakeUp",
    "current",
    "give_way",
    "growing_pauses",
    "in_thread",
    "return_pooled_connection",
    "sleep",
    "start_in_thread",
    "wait_for",
]
