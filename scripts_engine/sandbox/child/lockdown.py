"""The lockdown: a child permanently drops every privilege that it does not need to run Lua.

Role in a run: none; each child applies it once, before it reports that it is ready. Its steps are
called layers. A layer that the platform lacks is reported with the reason; the caller decides
whether to continue.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from scripts_engine.sandbox.child.system_calls import NotInstalled, filter_program
from scripts_engine.sandbox.contract import LayerName
from scripts_engine.sandbox.limits import PROCESS_MEMORY_BYTES

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG = 1, 2
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 38, 39
_INSTRUCTION_BYTES = 8

# The same numbers on every architecture, like those of all recent system calls.
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_RESTRICT_SELF = 444, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
_libc = ctypes.CDLL(None, use_errno=True)
# Looked up here, since each child would otherwise do it again.
_syscall, _prctl_function = _libc.syscall, _libc.prctl


class _FilterProgram(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = (("instructions", ctypes.c_ushort), ("program", ctypes.c_char_p))


class LayerMissing(Exception):
    """The platform does not offer this layer; the text says why."""


def set_rlimits() -> None:
    """Forbid files, processes and core dumps; bound the address space.

    The worker sets the CPU limit before each run.
    """
    for kind, value in (
        (resource.RLIMIT_AS, PROCESS_MEMORY_BYTES),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def set_no_new_privs() -> None:
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    # Other processes of the same user cannot read the memory of this one then.
    _prctl(PR_SET_DUMPABLE, 0)


def set_pdeathsig(parent_pid: int) -> None:
    """Die with the parent, which must be single-threaded.

    The kernel sends the signal when the forking thread ends, not the process. A parent that ended
    before the call would send none, hence the check.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


@cache
def _landlock_ruleset() -> ctypes.Array[ctypes.c_uint64]:
    """Every right that the kernel can deny: struct landlock_ruleset_attr of linux/landlock.h.

    Raises LayerMissing.
    """
    version = _syscall(
        SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION
    )
    if version < 1:
        raise LayerMissing(f"not offered by the kernel ({_errno_name()})")
    file_rights = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    handled = [(1 << file_rights) - 1]
    if version >= 4:
        handled.append(0b11)  # TCP bind and connect
    if version >= 6:
        handled.append(0b11)  # abstract Unix sockets, signals to other processes
    return (ctypes.c_uint64 * len(handled))(*handled)


def restrict_with_landlock() -> None:
    """Deny files, TCP ports, abstract sockets and signals, as far as the kernel can.

    Raises LayerMissing.
    """
    ruleset = _landlock_ruleset()
    descriptor = _syscall(
        SYS_LANDLOCK_CREATE_RULESET, ruleset, ctypes.c_size_t(ctypes.sizeof(ruleset)), 0
    )
    if descriptor < 0:
        raise LayerMissing(f"refused by the kernel ({_errno_name()})")
    try:
        if _syscall(SYS_LANDLOCK_RESTRICT_SELF, descriptor, 0) != 0:
            raise LayerMissing(f"refused by the kernel ({_errno_name()})")
    finally:
        os.close(descriptor)


def restrict_with_seccomp() -> None:
    """Let the kernel kill the process at a system call off the list. Raises LayerMissing."""
    try:
        program = filter_program()
    except NotInstalled as error:
        raise LayerMissing(str(error)) from error
    loaded = _FilterProgram(len(program) // _INSTRUCTION_BYTES, program)
    if _prctl_function(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(loaded), 0, 0) != 0:
        raise LayerMissing(f"refused by the kernel ({_errno_name()})")


def prepare_lock_down() -> None:
    """Compile what `lock_down` loads, once for all children that this process will fork."""
    for prepare in (_landlock_ruleset, filter_program):
        with suppress(LayerMissing, NotInstalled):
            prepare()


def lock_down(parent_pid: int) -> dict[LayerName, str | None]:
    """Apply every layer, and return for each None or the reason why it is missing.

    This process, or the one that forked it, has called `prepare_lock_down` before. The order of the
    steps matters: a later one forbids what an earlier one needs.
    """
    steps: tuple[tuple[LayerName, Callable[[], None]], ...] = (
        (LayerName.PDEATHSIG, lambda: set_pdeathsig(parent_pid)),
        (LayerName.NO_NEW_PRIVS, set_no_new_privs),
        # Landlock must open a descriptor, which the rlimits forbid.
        (LayerName.LANDLOCK, restrict_with_landlock),
        (LayerName.RLIMITS, set_rlimits),
        (LayerName.SECCOMP, restrict_with_seccomp),
    )
    report: dict[LayerName, str | None] = {}
    for name, apply in steps:
        try:
            apply()
        except LayerMissing as missing:
            report[name] = str(missing)
        else:
            report[name] = None
    return report


def get_prctl(option: int) -> int:
    """The value of a PR_GET option that prctl returns as its result."""
    return int(_prctl_function(option, 0, 0, 0, 0))


def get_pdeathsig() -> int:
    value = ctypes.c_int()
    _prctl_function(PR_GET_PDEATHSIG, ctypes.byref(value), 0, 0, 0)
    return value.value


def _prctl(option: int, value: int) -> None:
    if _prctl_function(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _errno_name() -> str:
    code = ctypes.get_errno()
    return errno.errorcode.get(code, str(code))
