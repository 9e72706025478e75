"""The sandbox of one worker: warm children behind a bounded number of slots."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Literal

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.contract import HostHandler, Job, Outcome, OutcomeKind, ScriptError
from scripts_engine.sandbox.limits import MAX_SOURCE_BYTES, Limits, figure_in_words
from scripts_engine.sandbox.parent import child_frames, endings
from scripts_engine.sandbox.parent.child_frames import Ready, Refused
from scripts_engine.sandbox.parent.child_process import ChildDied, ChildProcess, DeadlinePassed
from scripts_engine.sandbox.parent.conversation import Conversation, TooManyHostCalls
from scripts_engine.sandbox.parent.endings import Ending
from scripts_engine.sandbox.parent.fork_client import ForkClient, ForkServerLost
from scripts_engine.sandbox.parent.observer import KillReason, PoolObserver
from scripts_engine.sandbox.parent.slots import FairSlots, NoSlot, RunTimes
from scripts_engine.sandbox.parent.warm_children import WarmChildren
from scripts_engine.sandbox.protocol import ProtocolError, Tag

# What becomes of a child after a run.
Fate = Literal["warm", "killed", "recycled", "evicted"]

SPAWN_SECONDS = 10.0
# More would take all slots, and a processor's time, from tenants whose child waits for them.
SPAWNS_AT_ONCE = 2
SYNTAX_LIMITS = Limits(wall_seconds=2.0, cpu_seconds=2)


class SandboxBusy(Exception):
    """Every slot, or the tenant's share of them, is taken, and nobody may wait any longer."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("all sandbox slots are busy")
        self.retry_after = retry_after
        """Seconds until a slot would be free, if runs go on as they do."""


class SandboxUnavailable(Exception):
    """No process can be had to run anything in."""


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
    """At a limit, or because they broke the protocol or crashed."""
    recycled: int
    """Replaced after their last run, or after one that ran out of memory."""
    evicted: int
    """Given up for another tenant."""
    fork_servers: int
    """Started so far: more than one means that one was lost."""


class SandboxPool:
    """Runs jobs in children of its own fork server. Thread-safe.

    Nothing is started before the first run, and a forked copy of the process starts anew.
    """

    _lock: threading.Lock
    _starting: threading.Lock
    _slots: FairSlots
    _run_times: RunTimes
    _warm: WarmChildren
    _children: int
    _counts: Counter[str]
    _client: ForkClient | None
    _is_closed: bool

    def __init__(
        self,
        *,
        size: int = 8,
        processes: int | None = None,
        tenant_share: int | None = None,
        queue_size: int | None = None,
        queue_seconds: float = 1.0,
        runs_per_child: int = 1000,
        observer: PoolObserver | None = None,
    ) -> None:
        """At most `size` scripts run at once, in at most `processes`: as many, unless given.

        `tenant_share` is half of the slots, at least one, unless given. At most `queue_size` wait
        for a slot, four to each unless given, and half as many of one tenant.
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
        self._observer = observer or PoolObserver()
        self._start_empty()
        forget = weakref.WeakMethod(self._forget_inherited)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def run(self, tenant: str, job: Job, host: HostHandler | None = None) -> Outcome:
        """Run a script in a child of the tenant and wait for what comes of it.

        Raises SandboxBusy, SandboxUnavailable, and whatever `host` raises besides HostCallError:
        the run is ended then.
        """
        if len(job.source) > MAX_SOURCE_BYTES:
            return _refused_source()
        request = [
            Tag.RUN,
            job.source,
            _chunk_name(job.chunk_name),
            dict(job.params),
            job.headers,
            job.limits.as_run_arguments(),
            job.trace_lines,
        ]
        read_answer = partial(endings.of_run, limits=job.limits, source=job.source)
        return self._execute(tenant, request, job, read_answer, host)

    def check_syntax(self, tenant: str, source: bytes, chunk_name: str) -> ScriptError | None:
        """Compile a source in a child, without running it.

        Raises SandboxBusy, SandboxUnavailable.
        """
        if len(source) > MAX_SOURCE_BYTES:
            return _refused_source().error
        job = Job(source=source, chunk_name=chunk_name, limits=SYNTAX_LIMITS)
        request = [Tag.CHECK, source, _chunk_name(chunk_name)]
        read_answer = partial(endings.of_syntax_check, source=source)
        return self._execute(tenant, request, job, read_answer).error

    def stats(self) -> PoolStats:
        with self._lock:
            return PoolStats(
                slots=self._slots.size,
                tenant_share=self._slots.tenant_share,
                busy=self._slots.busy,
                waiting=self._slots.waiting,
                children=self._children,
                idle=len(self._warm),
                spawned=self._counts["spawned"],
                killed=self._counts["killed"],
                recycled=self._counts["recycled"],
                evicted=self._counts["evicted"],
                fork_servers=self._counts["fork_servers"],
            )

    def fork_server_pid(self) -> int | None:
        """The process whose children run the scripts; None before the first run."""
        client = self._client
        return client.pid if client else None

    def close(self) -> None:
        """End every process. A run in progress loses its child; later ones are refused."""
        with self._starting, self._lock:
            self._is_closed = True
            idle = self._warm.take_all()
            client, self._client = self._client, None
        for child in idle:
            child.end()
        if client:
            client.close()

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._slots = FairSlots(
            self._size,
            self._tenant_share,
            self._observer,
            queue_size=self._queue_size,
            tenant_queue_share=max(1, self._queue_size // 2),
            must_prepare=self._must_spawn,
            preparing_at_once=SPAWNS_AT_ONCE,
        )
        self._run_times = RunTimes()
        self._warm = WarmChildren()
        self._children = 0
        self._counts = Counter()
        self._client = None
        self._is_closed = False

    def _forget_inherited(self) -> None:
        """In a forked copy: locks may be held by threads that are gone, children are not ours.

        Their descriptors must go, or the fork server would outlive the original.
        """
        idle, client = self._warm.take_all(), self._client
        self._start_empty()
        for child in idle:
            child.forget()
        if client:
            client.forget()

    def _execute(
        self,
        tenant: str,
        request: list[Any],
        job: Job,
        read_answer: Callable[[Sequence[Any]], Ending],
        host: HostHandler | None = None,
    ) -> Outcome:
        frame = protocol.encode(request)
        queued = time.monotonic()
        try:
            with self._slots.hold(tenant, self._queue_seconds) as slot:
                child, conversation = self._send(tenant, frame, job.limits, host)
                slot.is_prepared()
                fate: Fate = "killed"
                why_killed: KillReason | None = KillReason.HOST
                try:
                    ending, why_killed = self._wait(child, conversation, job, read_answer)
                    duration_seconds = time.monotonic() - conversation.started
                    self._run_times.record(tenant, duration_seconds)
                    logs = child.log_area.lines()
                    if why_killed is None:
                        fate = self._next_of(child, ending)
                finally:
                    self._part(child, fate, why_killed)
        except NoSlot as no_slot:
            self._observer.refused(no_slot.reason)
            mean_seconds = self._run_times.mean_seconds(tenant)
            run_seconds = job.limits.wall_seconds if mean_seconds is None else mean_seconds
            raise SandboxBusy(retry_after=max(1, ceil(run_seconds * no_slot.ahead))) from None
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
        )

    def _send(
        self, tenant: str, frame: bytes, limits: Limits, host: HostHandler | None
    ) -> tuple[ChildProcess, Conversation]:
        """Hand the request to a child. A warm one that turns out dead is replaced once.

        Never after the whole request has been sent: the script may have had effects then.
        """
        child = self._take_warm(tenant)
        if child:
            conversation = Conversation(child, limits, host)
            try:
                conversation.send(frame)
                return child, conversation
            except (ChildDied, ProcessLookupError, DeadlinePassed):
                self._part(child, "killed")
            except BaseException:
                self._part(child, "killed")
                raise
        child = self._spawn(tenant)
        try:
            conversation = Conversation(child, limits, host)
            conversation.send(frame)
        except (ChildDied, ProcessLookupError, DeadlinePassed) as error:
            self._part(child, "killed")
            raise SandboxUnavailable("a new sandbox process does not take its work") from error
        return child, conversation

    def _wait(
        self,
        child: ChildProcess,
        conversation: Conversation,
        job: Job,
        read_answer: Callable[[Sequence[Any]], Ending],
    ) -> tuple[Ending, KillReason | None]:
        """How it ended, and why the child may not go on, if so."""
        client = self._client
        try:
            return read_answer(conversation.wait()), None
        except DeadlinePassed:
            child.kill()
            ending = endings.out_of_wall_time(job.limits, _line(child, job))
            return ending, KillReason.WALL_TIME
        except ChildDied:
            # A child that only hung up must end too before anybody waits for its status.
            child.kill()
            status = client.exit_status(child.pid) if client else None
            ending = endings.from_exit_status(status, job.limits, _line(child, job))
            return ending, _reason_of_death(ending)
        except TooManyHostCalls:
            return endings.too_many_host_calls(job.limits), KillReason.HOST_CALLS
        except ProtocolError as error:
            ending = endings.failed(f"the sandbox process broke the protocol: {error}")
            return ending, KillReason.PROTOCOL

    def _next_of(self, child: ChildProcess, ending: Ending) -> Fate:
        child.runs += 1
        worn_out = child.runs >= self._runs_per_child
        return "recycled" if worn_out or ending.kind == OutcomeKind.OUT_OF_MEMORY else "warm"

    def _part(self, child: ChildProcess, fate: Fate, why_killed: KillReason | None = None) -> None:
        """Put the child back among the warm ones, or end it."""
        with self._lock:
            if fate == "warm" and not self._is_closed:
                self._warm.add(child)
                return
            self._children -= 1
            self._counts[fate] += 1
        child.end()
        self._tell(fate, why_killed)

    def _tell(self, fate: Fate, why_killed: KillReason | None) -> None:
        if fate == "killed":
            self._observer.killed(why_killed or KillReason.UNREACHABLE)
        elif fate == "recycled":
            self._observer.recycled()
        elif fate == "evicted":
            self._observer.evicted()

    def _take_warm(self, tenant: str) -> ChildProcess | None:
        with self._lock:
            return self._warm.take(tenant)

    def _must_spawn(self, tenant: str) -> bool:
        """While a fork server starts, which takes it longer than spawning, all may wait for it."""
        client = self._client
        if client is None or not client.has_forked:
            return False
        with self._lock:
            return not self._warm.has(tenant)

    def _spawn(self, tenant: str) -> ChildProcess:
        """A new child, in place of the least needed when there are as many as may be.

        Raises SandboxUnavailable.
        """
        with self._lock:
            if self._is_closed:
                raise SandboxUnavailable("the sandbox is closed")
            is_full = self._children >= self._processes
            given_up = self._warm.take_least_needed() if is_full else None
            self._children += 1
        if given_up:
            self._part(given_up, "evicted")
        try:
            child = self._fork()
        except BaseException:
            with self._lock:
                self._children -= 1
            raise
        child.tenant = tenant
        with self._lock:
            self._counts["spawned"] += 1
        self._observer.spawned()
        return child

    def _fork(self) -> ChildProcess:
        client = self._running_client()
        try:
            return _first_word(ChildProcess(*client.fork()))
        except ForkServerLost:
            self._drop_client(client)
        try:
            return _first_word(ChildProcess(*self._running_client().fork()))
        except ForkServerLost as error:
            raise SandboxUnavailable(str(error)) from error

    def _running_client(self) -> ForkClient:
        with self._starting:
            if self._is_closed:
                raise SandboxUnavailable("the sandbox is closed")
            if self._client is None:
                try:
                    self._client = ForkClient()
                except ForkServerLost as error:
                    raise SandboxUnavailable(str(error)) from error
                self._counts["fork_servers"] += 1
            return self._client

    def _drop_client(self, lost: ForkClient) -> None:
        """Its children have died with it; those that are warm are found out when taken."""
        with self._starting:
            if self._client is lost:
                self._client = None
        lost.close()


def _first_word(child: ChildProcess) -> ChildProcess:
    """Wait until the child is locked down and ready. Raises SandboxUnavailable."""
    try:
        frame = child.receive(time.monotonic() + SPAWN_SECONDS)
    except (ChildDied, DeadlinePassed, ProtocolError) as error:
        child.end()
        raise SandboxUnavailable("a new sandbox process did not get ready") from error
    if not isinstance(frame, Ready):
        child.end()
        reason = frame.reason if isinstance(frame, Refused) else "it said something else"
        raise SandboxUnavailable(f"a new sandbox process refuses to serve: {reason}")
    return child


def _reason_of_death(ending: Ending) -> KillReason:
    if ending.kind == OutcomeKind.TIMED_OUT:
        return KillReason.CPU_TIME
    if ending.kind == OutcomeKind.OUT_OF_MEMORY:
        return KillReason.MEMORY
    return KillReason.CRASHED


def _line(child: ChildProcess, job: Job) -> int | None:
    return child_frames.line(child.log_area.current_line(), job.source) if job.trace_lines else None


def _chunk_name(name: str) -> bytes:
    """Lua prints it in front of every message, so it stays on one line."""
    return " ".join(name.split()).encode() or b"script"


def _refused_source() -> Outcome:
    figure = figure_in_words(MAX_SOURCE_BYTES)
    return Outcome(
        kind=OutcomeKind.FAILED,
        reply=None,
        error=ScriptError(f"the source is too long: {figure} limit"),
        logs=(),
        host_calls=(),
        started_at=time.time(),
        queue_seconds=0.0,
        duration_seconds=0.0,
        cpu_seconds=0.0,
    )
