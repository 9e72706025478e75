"""The events of a pool, for metrics: an observer is called as they happen."""

from __future__ import annotations

from enum import StrEnum


class KillReason(StrEnum):
    """Why a child was killed, or was found dead."""

    WALL_TIME = "wall-time"
    CPU_TIME = "cpu-time"
    MEMORY = "memory"
    CRASHED = "crashed"
    """The process ended by itself, or was ended from outside."""
    PROTOCOL = "protocol"
    """The child sent an invalid frame."""
    HOST_CALLS = "host-calls"
    """The script went on making host calls after the limit refused them."""
    HOST = "host"
    """The handler of its host calls raised."""
    UNREACHABLE = "unreachable"
    """The child did not take the request: it was dead or stuck before the run began."""


class BusyReason(StrEnum):
    """Why a run found no slot."""

    ALL_SLOTS = "all-slots"
    TENANT_SHARE = "tenant-share"


class PoolObserver:
    """Ignores every event. Overrides are called in the threads of the runs and must be quick."""

    def slots_in_use(self, count: int) -> None:
        """Called with the slots' lock held, after each change."""

    def about_to_wait(self) -> None:
        """Called in the thread of a run that finds no free slot, before it waits."""

    def waiting(self, count: int) -> None:
        """Called with the slots' lock held, after each change."""

    def spawned(self) -> None:
        """A child was started."""

    def killed(self, reason: KillReason) -> None:
        """A child was killed, or found dead."""

    def recycled(self) -> None:
        """A child was ended after its last run, or after a run that ran out of memory."""

    def evicted(self) -> None:
        """A warm child was ended to make room for another tenant."""

    def refused(self, reason: BusyReason) -> None:
        """No slot became free in time, or too many runs waited already."""
