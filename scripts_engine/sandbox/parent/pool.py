"""The sandbox of one worker: find or make a child of the tenant, run, give the child back.

Role in a run: the entry point. `waiting` decides when the run may start, `children` provides the
child, and `conversation` runs the job in it.
"""

from __future__ import annotations

import os
import time
import weakref
from dataclasses import dataclass
from math import ceil

from scripts_engine.sandbox.contract import (
    GlobalUse,
    HostHandler,
    Job,
    Outcome,
    OutcomeKind,
    ScriptError,
)
from scripts_engine.sandbox.limits import (
    MAX_PROGRAM_BYTES,
    MAX_QUEUE_SECONDS,
    MAX_SOURCE_BYTES,
    Limits,
    figure_in_words,
)
from scripts_engine.sandbox.parent.child_process import (
    ChildDied,
    ChildProcess,
    DeadlinePassed,
    SpawnFailed,
)
from scripts_engine.sandbox.parent.children import Change, Children
from scripts_engine.sandbox.parent.conversation import Conversation, Request
from scripts_engine.sandbox.parent.waiting import (
    FairSlots,
    KillReason,
    NoSlot,
    PoolObserver,
    RunTimes,
    Waiting,
)

# More at once would take every slot, and the CPU, from tenants that have a warm child.
SPAWNS_AT_ONCE = 2


class SandboxBusy(Exception):
    """Every slot, or the tenant's share of them, is taken, and the run could not wait longer."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("all sandbox slots are busy")
        self.retry_after = retry_after
        """Estimated seconds until a slot is free."""


class SandboxUnavailable(Exception):
    """No sandbox process can be started."""


@dataclass(frozen=True, slots=True)
class PoolStats:
    slots: int
    tenant_share: int
    busy: int
    waiting: int
    children: int
    idle: int
    spawned: int
    killed: int
    """At a limit, or after a crash or a protocol error."""
    recycled: int
    """Replaced after their last run, or after a run that ran out of memory."""
    evicted: int
    """Ended to make room for another tenant."""
    expired: int
    """Ended after a time without a run."""
    fork_servers: int
    """Started so far; more than one means that one was lost."""


class SandboxPool:
    """Runs jobs in children of its own fork server. Thread-safe.

    Starts no process before the first run; a forked copy of the worker starts its own.
    """

    _slots: FairSlots
    _run_times: RunTimes
    _children: Children

    def __init__(
        self,
        *,
        size: int = 8,
        processes: int | None = None,
        tenant_share: int | None = None,
        queue_size: int | None = None,
        queue_seconds: float = MAX_QUEUE_SECONDS,
        runs_per_child: int = 1000,
        idle_seconds: float = 300.0,
        observer: PoolObserver | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        """Run at most `size` scripts at once, in at most `processes` children (default: `size`).

        A child runs at most `runs_per_child` scripts, and ends after `idle_seconds` without one.
        `tenant_share` defaults to half of the slots, at least one. At most `queue_size` runs wait
        for a slot (default: four per slot); half of them may be of one tenant while others wait.
        """
        if size < 1:
            raise ValueError("a pool needs at least one slot")
        if processes is not None and processes < size:
            raise ValueError("a pool needs a process for each slot")
        self._size = size
        self._processes = processes or size
        self._tenant_share = tenant_share or max(1, size // 2)
        self._queue_size = 4 * size if queue_size is None else queue_size
        self._queue_seconds = queue_seconds
        self._runs_per_child = runs_per_child
        self._idle_seconds = idle_seconds
        self._observer = observer or PoolObserver()
        self._waiting = waiting or Waiting()
        self._start_empty()
        forget = weakref.WeakMethod(self._forget_inherited)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def run(self, tenant: str, job: Job, host: HostHandler | None = None) -> Outcome:
        """Run a script in a child of the tenant and wait for its outcome.

        Raises SandboxBusy, SandboxUnavailable, and any exception of `host` but HostCallError;
        that exception ends the run.
        """
        if len(job.source) > MAX_SOURCE_BYTES:
            return _refused_source()
        if len(job.source) + job.libraries.source_bytes > MAX_PROGRAM_BYTES:
            return _refused_program()
        return self._execute(tenant, Request.to_run(job), host)

    def check_syntax(self, tenant: str, source: bytes, chunk_name: str) -> ScriptError | None:
        """Compile a source in a child, without running it.

        Raises SandboxBusy, SandboxUnavailable.
        """
        if len(source) > MAX_SOURCE_BYTES:
            return _refused_source().error
        return self._execute(tenant, Request.to_check_syntax(source, chunk_name)).error

    def list_globals(self, tenant: str, source: bytes) -> tuple[GlobalUse, ...]:
        """List the uses of globals that look like mistakes, in a child, without running the source.

        Empty if the source does not compile, or cannot be listed within the limits of a syntax
        check. Raises SandboxBusy, SandboxUnavailable.
        """
        if len(source) > MAX_SOURCE_BYTES:
            return ()
        found: list[GlobalUse] = []
        self._execute(tenant, Request.to_list_globals(source, found.extend))
        return tuple(found)

    def count_runs_of_state(self, tenant: str) -> int:
        """How many runs the Lua state has served that serves the tenant's next run.

        For checks that a run finds nothing of the one before it; only meaningful with one slot.
        """
        counts: list[int] = []
        self._execute(tenant, Request.to_count_runs(counts.append))
        return counts[0]

    def stats(self) -> PoolStats:
        slots, children = self._slots, self._children
        return PoolStats(
            slots=slots.size,
            tenant_share=slots.tenant_share,
            busy=slots.busy,
            waiting=slots.waiting,
            children=children.count,
            idle=children.idle,
            spawned=children.changes[Change.SPAWNED],
            killed=children.changes[Change.KILLED],
            recycled=children.changes[Change.RECYCLED],
            evicted=children.changes[Change.EVICTED],
            expired=children.changes[Change.EXPIRED],
            fork_servers=children.spawner.fork_servers,
        )

    def fork_server_pid(self) -> int | None:
        """The parent process of all children; None before the first run."""
        return self._children.spawner.fork_server_pid

    def close(self) -> None:
        """End every process. A run in progress loses its child; later ones are refused."""
        self._children.close()

    def _start_empty(self) -> None:
        self._children = Children(
            self._processes,
            self._runs_per_child,
            self._idle_seconds,
            self._observer,
            self._waiting,
        )
        self._slots = FairSlots(
            self._size,
            self._tenant_share,
            self._observer,
            queue_size=self._queue_size,
            tenant_queue_share=max(1, self._queue_size // 2),
            must_prepare=self._children.must_make,
            preparing_at_once=SPAWNS_AT_ONCE,
            waiting=self._waiting,
        )
        self._run_times = RunTimes()

    def _forget_inherited(self) -> None:
        """Start empty in a forked copy of the worker, which has none of the original's threads."""
        inherited = self._children
        self._start_empty()
        inherited.forget()

    def _execute(self, tenant: str, request: Request, host: HostHandler | None = None) -> Outcome:
        queued = time.monotonic()
        try:
            with self._slots.hold(tenant, self._queue_seconds) as slot:
                conversation = self._begin(tenant, request, host)
                slot.is_prepared()
                child = conversation.child
                try:
                    ending = conversation.wait(self._children.spawner.exit_status)
                    duration_seconds = time.monotonic() - conversation.started
                    self._run_times.record(tenant, duration_seconds)
                    logs = child.log_area.lines()
                except BaseException:
                    # The host handler raised: the script still waits for its answer.
                    self._children.kill(child, KillReason.HOST)
                    raise
                self._children.give_back(child, ending)
        except NoSlot as no_slot:
            self._observer.refused(no_slot.reason)
            retry_after = self._seconds_until_free(tenant, request.limits, no_slot.ahead)
            raise SandboxBusy(retry_after) from None
        return Outcome(
            kind=ending.kind,
            reply=ending.reply,
            error=ending.error,
            logs=logs,
            host_calls=tuple(conversation.host_calls),
            started_at=conversation.started_at,
            queue_seconds=conversation.started - queued,
            duration_seconds=duration_seconds,
            cpu_seconds=conversation.cpu_seconds,
            verdict=ending.verdict,
        )

    def _begin(self, tenant: str, request: Request, host: HostHandler | None) -> Conversation:
        """Send the request to a warm child, or else to a new one. Raises SandboxUnavailable.

        A warm child found dead is replaced once. Never after the whole request has been sent: the
        script may have had effects by then.
        """
        warm = self._children.find(tenant)
        conversation = warm and self._send(warm, request, host)
        if conversation:
            return conversation
        try:
            new = self._children.make(tenant)
        except SpawnFailed as error:
            raise SandboxUnavailable(str(error)) from error
        conversation = self._send(new, request, host)
        if conversation is None:
            raise SandboxUnavailable("a new sandbox process does not take its work")
        return conversation

    def _send(
        self, child: ChildProcess, request: Request, host: HostHandler | None
    ) -> Conversation | None:
        """Send the request to the child; None if it is dead or does not read."""
        try:
            conversation = Conversation(child, request, host)
            conversation.send()
        except BaseException as error:
            self._children.kill(child, KillReason.UNREACHABLE)
            if isinstance(error, ChildDied | ProcessLookupError | DeadlinePassed):
                return None
            raise
        return conversation

    def _seconds_until_free(self, tenant: str, limits: Limits, runs_ahead: float) -> int:
        """Estimate from the tenant's mean run time, or from the limit before its first run."""
        mean_seconds = self._run_times.mean_seconds(tenant)
        run_seconds = limits.wall_seconds if mean_seconds is None else mean_seconds
        return max(1, ceil(run_seconds * runs_ahead))


def _refused_source() -> Outcome:
    return _refused("the source is too long", MAX_SOURCE_BYTES)


def _refused_program() -> Outcome:
    return _refused("the source is too long together with its libraries", MAX_PROGRAM_BYTES)


def _refused(problem: str, limit_bytes: int) -> Outcome:
    return Outcome(
        kind=OutcomeKind.FAILED,
        reply=None,
        error=ScriptError(f"{problem}: {figure_in_words(limit_bytes)} limit"),
        logs=(),
        host_calls=(),
        started_at=time.time(),
        queue_seconds=0.0,
        duration_seconds=0.0,
        cpu_seconds=0.0,
    )
