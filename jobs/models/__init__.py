from jobs.models.message import Message
from jobs.models.queue import PausedQueue, QueueEntry, QueueKey, RunLease, RunLimits
from jobs.models.schedule import CatchUp, Overlap, Schedule, ScheduleTick, TickOutcome

__all__ = [
    "CatchUp",
    "Message",
    "Overlap",
    "PausedQueue",
    "QueueEntry",
    "QueueKey",
    "RunLease",
    "RunLimits",
    "Schedule",
    "ScheduleTick",
    "TickOutcome",
]
