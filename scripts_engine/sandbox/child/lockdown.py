"""Gives up, for good, everything that a child does not need to run Lua.

Each step is a layer with a name. A layer that the platform lacks is reported with the reason;
whether to go on without it is for the caller to decide.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
from collections.abc import Callable
from functools import cache

from scripts_engine.sandbox.contract import LayerName

try:
    import pyseccomp
except (ImportError, RuntimeError, OSError) as error:
    # pyseccomp raises RuntimeError when libseccomp.so.2 is not installed.
    pyseccomp = None
    _seccomp_missing = str(error) or type(error).__name__
else:
    _seccomp_missing = ""

PROCESS_MEMORY_BYTES = 512 * 1024 * 1024

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG = 1, 2
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 38, 39

# The same numbers on every architecture: both calls are younger than the common table.
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_RESTRICT_SELF = 444, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
PROT_EXEC = 4

# Receiving and sending on the socket, memory, clocks, randomness, ending. No open, no socket,
# no exec, no clone, no kill, no prctl, no setrlimit.
ALLOWED_SYSCALLS = (
    "recvfrom",
    "sendto",
    "brk",
    "munmap",
    "mremap",
    "madvise",
    "futex",
    "getrandom",
    "clock_gettime",
    "gettimeofday",
    "time",
    "rt_sigreturn",
    "rt_sigprocmask",
    "restart_syscall",
    "exit",
    "exit_group",
)
# Allowed only without PROT_EXEC in the third argument.
MEMORY_SYSCALLS = ("mmap", "mprotect")

_libc = ctypes.CDLL(None, use_errno=True)


class LayerMissing(Exception):
    """The platform does not offer this layer; the text says why."""


def set_rlimits() -> None:
    """No file, no process, no core dump, bounded address space. CPU is armed by the worker."""
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
    # Other processes of the same user may not look into this one.
    _prctl(PR_SET_DUMPABLE, 0)


def set_pdeathsig(parent_pid: int) -> None:
    """Die with the parent, which must be single-threaded: the signal follows the thread."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def restrict_with_landlock() -> None:
    """Deny every file, TCP port, abstract socket and foreign process that the kernel can deny."""
    version = _libc.syscall(
        SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION
    )
    if version < 1:
        raise LayerMissing(f"not offered by the kernel ({_errno_name()})")
    file_rights = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    handled = [(1 << file_rights) - 1]
    if version >= 4:
        handled.append(0b11)  # TCP bind and connect
    if version >= 6:
        handled.append(0b11)  # abstract unix sockets and signals to the outside
    ruleset = (ctypes.c_uint64 * len(handled))(*handled)
    descriptor = _libc.syscall(
        SYS_LANDLOCK_CREATE_RULESET,
        ctypes.byref(ruleset),
        ctypes.c_size_t(ctypes.sizeof(ruleset)),
        0,
    )
    if descriptor < 0:
        raise LayerMissing(f"refused by the kernel ({_errno_name()})")
    try:
        if _libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, descriptor, 0) != 0:
            raise LayerMissing(f"refused by the kernel ({_errno_name()})")
    finally:
        os.close(descriptor)


def require_seccomp() -> None:
    """Raises LayerMissing when the library for it is not installed."""
    if pyseccomp is None:
        raise LayerMissing(_seccomp_missing)


@cache
def seccomp_filter() -> pyseccomp.SyscallFilter:
    """Raises LayerMissing. Made once, for whoever is forked later: it takes longest of all."""
    require_seccomp()
    allow_list = pyseccomp.SyscallFilter(pyseccomp.KILL_PROCESS)
    for name in ALLOWED_SYSCALLS:
        # "time" exists on some architectures only.
        if _exists(name):
            allow_list.add_rule(pyseccomp.ALLOW, name)
    no_exec = pyseccomp.Arg(2, pyseccomp.MASKED_EQ, PROT_EXEC, 0)
    for name in MEMORY_SYSCALLS:
        allow_list.add_rule(pyseccomp.ALLOW, name, no_exec)
    return allow_list


def restrict_with_seccomp() -> None:
    """Kill the process at any system call that is not on the list."""
    try:
        seccomp_filter().load()
    except OSError as error:
        raise LayerMissing(f"refused by the kernel ({error})") from error


def lock_down(parent_pid: int) -> dict[LayerName, str | None]:
    """Apply every layer, in the one order that works. Says of each None or why it is missing."""
    steps: tuple[tuple[LayerName, Callable[[], None]], ...] = (
        (LayerName.PDEATHSIG, lambda: set_pdeathsig(parent_pid)),
        (LayerName.NO_NEW_PRIVS, set_no_new_privs),
        # Landlock needs a descriptor for a moment, rlimits leave none.
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
    """The value of a PR_GET option that answers by its result."""
    return int(_libc.prctl(option, 0, 0, 0, 0))


def get_pdeathsig() -> int:
    value = ctypes.c_int()
    _libc.prctl(PR_GET_PDEATHSIG, ctypes.byref(value), 0, 0, 0)
    return value.value


def _exists(syscall: str) -> bool:
    return int(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, syscall)) >= 0


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _errno_name() -> str:
    code = ctypes.get_errno()
    return errno.errorcode.get(code, str(code))
