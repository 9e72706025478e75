"""Fixtures that run scripts in real processes, without the settings of the project."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from scripts_engine.sandbox.contract import HostHandler, Job, Outcome
from scripts_engine.sandbox.limits import MAX_WALL_SECONDS, Limits
from scripts_engine.sandbox.parent.pool import SandboxPool

from .processes import wait_until

Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def shared_pool() -> Iterator[SandboxPool]:
    """One pool for all tests that only look at what a script does."""
    pool = SandboxPool()
    yield pool
    pool.close()


@pytest.fixture
def new_pool() -> Iterator[Callable[..., SandboxPool]]:
    """A factory of pools for tests that look at processes; closes them at the end."""
    pools: list[SandboxPool] = []

    def make(**options: Any) -> SandboxPool:
        pools.append(SandboxPool(**options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def run_in(
    pool: SandboxPool,
    source: str | bytes,
    *,
    tenant: str = "acme",
    host: HostHandler | None = None,
    limits: Limits | None = None,
    **job: Any,
) -> Outcome:
    """Run a source as the script "demo"."""
    text = source if isinstance(source, bytes) else source.encode()
    return pool.run(
        tenant, Job(source=text, chunk_name="demo", limits=limits or Limits(), **job), host
    )


def run_until_kept(pool: SandboxPool, source: str, **options: Any) -> int:
    """Run a source until its Lua state serves the next run; return how many it has served.

    A state is dropped if a busy machine slows the run down.
    """
    for _ in range(50):
        run_in(pool, source, **options)
        if served := pool.count_runs_of_state("acme"):
            return served
    raise AssertionError("no state was kept")


@contextmanager
def held_slots(pool: SandboxPool, tenants: list[str]) -> Iterator[None]:
    """Occupy one slot per named tenant during the block."""
    may_end = threading.Event()

    def wait(name: str, args: list[Any], *, deadline: float, note: object) -> None:
        may_end.wait(MAX_WALL_SECONDS)

    with ThreadPoolExecutor(len(tenants)) as executor:
        try:
            for tenant in tenants:
                limits = Limits(wall_seconds=MAX_WALL_SECONDS)
                executor.submit(
                    run_in, pool, "store.get('k')", tenant=tenant, host=wait, limits=limits
                )
            wait_until(lambda: pool.stats().busy == len(tenants))
            yield
        finally:
            may_end.set()


@pytest.fixture
def run(shared_pool: SandboxPool) -> Run:
    """Run a source in the shared pool."""

    def run_source(source: str | bytes, **options: Any) -> Outcome:
        return run_in(shared_pool, source, **options)

    return run_source


@pytest.fixture
def evaluate(run: Run) -> Callable[..., bytes]:
    """Run a script that must succeed, and return the body of its reply."""

    def evaluate_source(source: str | bytes, **options: Any) -> bytes:
        outcome = run(source, **options)
        assert outcome.error is None
        assert outcome.reply is not None
        return outcome.reply.body

    return evaluate_source


@pytest.fixture
def fail(run: Run) -> Callable[..., str]:
    """Run a script that must fail, and return the message of its error."""

    def fail_source(source: str | bytes, **options: Any) -> str:
        outcome = run(source, **options)
        assert outcome.kind == "failed"
        assert outcome.reply is None
        assert outcome.error is not None
        return outcome.error.message

    return fail_source
