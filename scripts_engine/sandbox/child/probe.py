"""Tries every layer of the lockdown, each in a process of its own.

No role in a run. Runs in a new, single-threaded interpreter and prints a JSON object: for each
layer null if it works, otherwise the reason.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable

from scripts_engine.sandbox.child import lockdown
from scripts_engine.sandbox.child.lockdown import LayerMissing, NotInstalled, filter_program
from scripts_engine.sandbox.contract import LayerName

_WAIT_MILLISECONDS = 5000


def _probe_rlimits() -> str | None:
    lockdown.set_rlimits()
    try:
        os.open("/", os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.EMFILE and resource.getrlimit(resource.RLIMIT_AS)[0] > 0:
            return None
    return "a file could be opened"


def _probe_no_new_privs() -> str | None:
    lockdown.set_no_new_privs()
    value = lockdown.get_prctl(lockdown.PR_GET_NO_NEW_PRIVS)
    return None if value == 1 else "the flag is not set"


def _probe_landlock() -> str | None:
    lockdown.set_no_new_privs()
    lockdown.restrict_with_landlock()
    try:
        os.open("/", os.O_RDONLY)
    except PermissionError:
        return None
    return "a file could be opened"


def _probe_seccomp() -> str | None:
    # Compiled once for all tries, which also suppress the reason why it cannot be.
    try:
        filter_program()
    except NotInstalled as error:
        return str(error)
    lockdown.set_no_new_privs()
    allowed = [name for name, call in FORBIDDEN_CALLS.items() if not _is_stopped(call)]
    return f"not stopped: {', '.join(allowed)}" if allowed else None


def _is_stopped(call: Callable[[], object]) -> bool:
    """Whether seccomp kills a process that makes this call."""
    pid = os.fork()
    if pid == 0:
        # Keep what the call opens, since closing is forbidden too; exiting is allowed.
        kept = []
        with contextlib.suppress(OSError, LayerMissing):
            lockdown.restrict_with_seccomp()
            kept.append(call())
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS


def _probe_pdeathsig() -> str | None:
    """Check that a process that waits for ever ends with the one that forked it."""
    alive, held_by_grandchild = os.pipe()
    pid = os.fork()
    if pid == 0:
        parent = os.getpid()
        ready, tell = os.pipe()
        if os.fork() == 0:
            lockdown.set_pdeathsig(parent)
            os.write(tell, b"!")
            signal.pause()
        os.read(ready, 1)
        os._exit(0)
    os.close(held_by_grandchild)
    os.waitpid(pid, 0)
    ended = select.poll()
    ended.register(alive, select.POLLIN | select.POLLHUP)
    return None if ended.poll(_WAIT_MILLISECONDS) else "a child outlived its parent"


FORBIDDEN_CALLS: dict[str, Callable[[], object]] = {
    "open": lambda: os.open("/", os.O_RDONLY),
    "socket": socket.socket,
    "fork": os.fork,
    "exec": lambda: os.execv("/", ["/"]),  # noqa: S606
    "kill": lambda: os.kill(0, 0),
    "prctl": lambda: lockdown.get_prctl(lockdown.PR_GET_NO_NEW_PRIVS),
}

PROBES: dict[LayerName, Callable[[], str | None]] = {
    LayerName.SECCOMP: _probe_seccomp,
    LayerName.LANDLOCK: _probe_landlock,
    LayerName.RLIMITS: _probe_rlimits,
    LayerName.NO_NEW_PRIVS: _probe_no_new_privs,
    LayerName.PDEATHSIG: _probe_pdeathsig,
}


def _try_in_child(name: LayerName) -> str | None:
    """The problem of the layer, or None if it works."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            problem = PROBES[name]()
        except (LayerMissing, OSError) as error:
            problem = str(error)
        os.write(theirs, (problem or "").encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitpid(pid, 0)[1]
    return said or (None if status == 0 else f"the probe ended with status {status}")


def main() -> None:
    sys.stdout.write(json.dumps({name: _try_in_child(name) for name in PROBES}))
