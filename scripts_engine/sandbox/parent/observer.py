"""What a pool tells of itself as it happens, for whoever counts."""

from __future__ import annotations

from enum import StrEnum


class KillReason(StrEnum):
    """Why a child was killed, or was found dead."""

    WALL_TIME = "wall-time"
    CPU_TIME = "cpu-time"
    MEMORY = "memory"
    CRASHED = "crashed"
    """It ended by itself, or something outside ended it."""
    PROTOCOL = "protocol"
    """It said something that makes no sense."""
    HOST_CALLS = "host-calls"
    """It went on with host calls that the limit refused."""
    HOST = "host"
    """The handler of its host calls raised."""
    UNREACHABLE = "unreachable"
    """It did not take its work: dead or stuck before the run began."""


class BusyReason(StrEnum):
    """Why a run found no slot."""

    ALL_SLOTS = "all-slots"
    TENANT_SHARE = "tenant-share"


class PoolObserver:
    """Hears everything and does nothing; called in the threads of the runs, so be quick."""

    def slots_in_use(self, count: int) -> None:
        """Called with the slots' lock held, after each change."""

    def about_to_wait(self) -> None:
        """Called in the thread that no slot is free for, before it waits for one."""

    def waiting(self, count: int) -> None:
        """Called with the slots' lock held, after each change."""

    def spawned(self) -> None:
        """A child was started."""

    def killed(self, reason: KillReason) -> None:
        """A child was killed, or found dead."""

    def recycled(self) -> None:
        """A child was ended after its last run, or after one that ran out of memory."""

    def evicted(self) -> None:
        """A warm child was ended to make room for another tenant's."""

    def refused(self, reason: BusyReason) -> None:
        """No slot came free in time, or too many waited for one."""
