"""The events that a pool reports to its observer."""

from __future__ import annotations

import os
import signal

import pytest

from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.parent.pool import SandboxBusy
from scripts_engine.sandbox.parent.waiting import BusyReason, KillReason, PoolObserver

from .conftest import held_slots, run_in
from .processes import children_of, is_running, wait_until

SLOW = "while true do end"


class Notes(PoolObserver):
    def __init__(self) -> None:
        self.told: list[str] = []
        self.in_use: list[int] = []

    def slots_in_use(self, count: int) -> None:
        self.in_use.append(count)

    def spawned(self) -> None:
        self.told.append("spawned")

    def killed(self, reason: KillReason) -> None:
        self.told.append(f"killed {reason}")

    def recycled(self) -> None:
        self.told.append("recycled")

    def evicted(self) -> None:
        self.told.append("evicted")

    def refused(self, reason: BusyReason) -> None:
        self.told.append(f"refused {reason}")


@pytest.fixture
def notes() -> Notes:
    return Notes()


def test_a_warm_child_is_reported_once(new_pool, notes):
    pool = new_pool(observer=notes)
    run_in(pool, "return 1")
    run_in(pool, "return 1")

    assert notes.told == ["spawned"]
    assert notes.in_use == [1, 0, 1, 0]


def test_recycled_and_evicted_children_are_reported(new_pool, notes):
    pool = new_pool(size=1, runs_per_child=2, observer=notes)
    run_in(pool, "return 1")
    run_in(pool, "return 1", tenant="globex")
    run_in(pool, "return 1", tenant="globex")

    assert notes.told == ["spawned", "evicted", "spawned", "recycled"]


def test_a_child_killed_at_a_time_limit_is_reported_with_that_limit(new_pool, notes):
    pool = new_pool(observer=notes)
    run_in(pool, SLOW, limits=Limits(wall_seconds=0.2))
    run_in(pool, SLOW, limits=Limits(wall_seconds=20, cpu_seconds=1))

    assert notes.told == ["spawned", "killed wall-time", "spawned", "killed cpu-time"]


def test_a_child_found_dead_and_one_that_crashes_are_reported_differently(new_pool, notes):
    pool = new_pool(observer=notes)
    run_in(pool, "return 1")
    [warm] = children_of(pool.fork_server_pid())
    os.kill(warm, signal.SIGKILL)
    wait_until(lambda: not is_running(warm))

    def kill_the_child(name: str, args: list[object], *, deadline: float, note: object) -> None:
        [busy] = children_of(pool.fork_server_pid())
        os.kill(busy, signal.SIGKILL)

    run_in(pool, "store.get('k')", host=kill_the_child)

    assert notes.told == ["spawned", "killed unreachable", "spawned", "killed crashed"]


def test_a_child_killed_for_its_host_handler_is_reported(new_pool, notes):
    def host(name: str, args: list[object], *, deadline: float, note: object) -> None:
        raise RuntimeError

    pool = new_pool(observer=notes)
    with pytest.raises(RuntimeError):
        run_in(pool, 'store.get("x")', host=host)

    assert notes.told == ["spawned", "killed host"]
    assert notes.in_use == [1, 0]


def refusal(pool, *, busy: list[str], tenant: str) -> None:
    """Occupy slots for the busy tenants, and run once more without a free slot."""
    with held_slots(pool, busy), pytest.raises(SandboxBusy):
        run_in(pool, "return 1", tenant=tenant)


def test_a_refusal_at_the_tenants_share_is_reported(new_pool, notes):
    refusal(new_pool(size=4, queue_seconds=0.1, observer=notes), busy=["acme"] * 2, tenant="acme")

    assert "refused tenant-share" in notes.told


def test_a_refusal_without_a_free_slot_is_reported(new_pool, notes):
    pool = new_pool(size=2, queue_seconds=0.1, observer=notes)
    refusal(pool, busy=["acme", "globex"], tenant="initech")

    assert "refused all-slots" in notes.told
