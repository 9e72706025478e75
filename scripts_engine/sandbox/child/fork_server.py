"""The fork server: the process that forks the children of one worker.

Role in a run: starts a child beforehand if the tenant has no warm one.

The process imports everything once, and is single-threaded so that it may fork safely. It has only
the control socket of the worker: no environment, files or settings that a child could inherit. It
ends when the worker closes that socket, and its children end with it.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import time
from contextlib import ExitStack, suppress
from typing import NoReturn

from scripts_engine.sandbox.child.lockdown import lock_down, prepare_lock_down
from scripts_engine.sandbox.child.operations import Operations, zone_files
from scripts_engine.sandbox.child.runtime import (
    LuaState,
    Prelude,
    UnexpectedGlobals,
    compile_prelude,
)
from scripts_engine.sandbox.child.serving import Child, ParentGone, give_back_memory
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.protocol import (
    EXIT_OUT_OF_MEMORY,
    FORK,
    NUMBER,
    LogArea,
    Tag,
    create_area_file,
    encode,
)

_CHANNEL_DESCRIPTOR = 3
# The worker asks for the wait status of a child only after a run died with it; this many others are
# kept.
_MAX_STATUSES = 1000
# After this many, the interpreter has adapted the bytecode.
_WARM_UP_RUNS = 20


class ForkServer:
    def __init__(self, control: socket.socket, prelude: Prelude, unexpected: str | None) -> None:
        """`unexpected` is the reason why no child may serve, or None."""
        self._control = control
        self._prelude = prelude
        self._unexpected = unexpected
        self._statuses: dict[int, int] = {}
        signal.signal(signal.SIGCHLD, self._reap)

    def serve_forever(self) -> None:
        """Fork on request until the worker closes the control socket, or is killed."""
        # A worker that is killed does not wait for the answer to its request.
        with suppress(ConnectionError):
            while request := self._control.recv(64):
                if request == FORK:
                    self._fork()
                else:
                    (pid,) = NUMBER.unpack(request[1:])
                    self._control.send(NUMBER.pack(self._take_status(pid)))

    def _fork(self) -> None:
        """Fork a child, or say why not: the error must not end the children that there are."""
        try:
            with ExitStack() as opened:
                ours, theirs = map(opened.enter_context, socket.socketpair())
                log_file = create_area_file()
                opened.callback(os.close, log_file)
                pid, pidfd = self._forked(theirs, log_file)
                opened.callback(os.close, pidfd)
                descriptors = [ours.fileno(), pidfd, log_file]
                socket.send_fds(self._control, [NUMBER.pack(pid)], descriptors)
        except OSError as error:
            # A child that was forked sees its socket close.
            self._control.send(NUMBER.pack(-(error.errno or errno.EIO)))

    def _forked(self, channel: socket.socket, log_file: int) -> tuple[int, int]:
        """The pid and pidfd of a new child. Raises OSError."""
        # A child reaped before its pidfd is open could leave its pid to another process.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            pid = os.fork()
            if pid == 0:
                self._become_child(channel, log_file, os.getppid())
            return pid, os.pidfd_open(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def _become_child(self, channel: socket.socket, log_file: int, server_pid: int) -> NoReturn:
        status = 1
        try:
            self._serve(channel, log_file, server_pid)
        except (ParentGone, ConnectionError):
            status = 0
        except MemoryError:
            status = EXIT_OUT_OF_MEMORY
        finally:
            # A child must never return into the loop of the fork server. No traceback is printed,
            # since formatting one would open source files.
            os._exit(status)

    def _serve(self, channel: socket.socket, log_file: int, server_pid: int) -> NoReturn:
        # SIGCHLD stays blocked here, so the handler of the fork server never runs.
        log_area = LogArea(log_file)
        channel = _keep_only(channel)
        lock_down(server_pid)
        child = Child(channel, log_area, self._prelude)
        if self._unexpected is not None:
            child.send(Tag.REFUSED, self._unexpected)
            raise ParentGone
        child.send(Tag.READY)
        child.serve_forever()

    def _reap(self, _signal: int, _frame: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._statuses[pid] = status
            while len(self._statuses) > _MAX_STATUSES:
                del self._statuses[next(iter(self._statuses))]

    def _take_status(self, pid: int) -> int:
        """The wait status of a child, which has ended: the wait is short."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            if pid not in self._statuses:
                try:
                    self._statuses[pid] = os.waitpid(pid, 0)[1]
                except ChildProcessError:
                    return 0
            return self._statuses.pop(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _keep_only(channel: socket.socket) -> socket.socket:
    """Close every descriptor but the channel, which becomes number 3; 0 to 2 are /dev/null."""
    # First the null device, whose own descriptor may be number 3.
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    descriptor = channel.detach()
    if descriptor != _CHANNEL_DESCRIPTOR:
        os.dup2(descriptor, _CHANNEL_DESCRIPTOR)
    os.closerange(_CHANNEL_DESCRIPTOR + 1, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, _CHANNEL_DESCRIPTOR)


def _warm_up(prelude: Prelude) -> None:
    """Do what a child does, so that children share the imports, bytecode and pages that it needs.

    The interpreter adapts the bytecode of a function to its first calls. In a child, that would
    copy the pages of every function.
    """
    prepare_lock_down()
    source = b'print(FromJson("[1]")) return ToJson({crypto.sha256(base64.encode("x"))})'
    run = [Tag.RUN, source, b"warm-up", b"", {}, [], Limits().as_run_arguments(), False]
    log_file = create_area_file()
    worker, channel = socket.socketpair()
    with worker, channel:
        worker.sendall(encode(run) * _WARM_UP_RUNS)
        worker.shutdown(socket.SHUT_WR)
        with suppress(ParentGone):
            Child(channel, LogArea(log_file), prelude).serve_forever()
    gc.collect()
    give_back_memory()


def _unexpected_names(prelude: Prelude) -> str | None:
    """How the names that a script can reach differ from the allow-list, or None."""
    try:
        _new_state(prelude).check_names()
    except UnexpectedGlobals as error:
        return str(error)
    return None


def _new_state(prelude: Prelude) -> LuaState:
    log_file = create_area_file()
    operations = Operations(
        LogArea(log_file), lambda _name, _arguments: None, prelude.later, lambda _key: b""
    )
    return LuaState(prelude, operations.serve, Limits().lua_memory_bytes)


def main(control_descriptor: int) -> None:
    # Scripts use UTC, since a locked-down child cannot read time zone files.
    os.environ["TZ"] = "UTC0"
    time.tzset()
    time.localtime()
    # Ctrl-C in a terminal is for the worker; the fork server ends with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=control_descriptor)
    # Before the lockdown, since a child cannot open the files.
    zone_files()
    prelude = compile_prelude()
    unexpected = _unexpected_names(prelude)
    _warm_up(prelude)
    gc.freeze()
    ForkServer(control, prelude, unexpected).serve_forever()
