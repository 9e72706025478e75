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
from typing import IO

from scripts_engine.sandbox.contract import LayerName
from scripts_engine.sandbox.limits import PROCESS_MEMORY_BYTES

# For the socket, memory, clocks, randomness and exit. Not open, socket, exec, clone, kill, prctl or
# setrlimit.
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
# Allowed only without PROT_EXEC in the third argument, so that no new machine code can run.
MEMORY_SYSCALLS = ("mmap", "mprotect")
PROT_EXEC = 4

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


class NotInstalled(Exception):
    """libseccomp or its Python module is missing; the text says why."""


def filter_program() -> bytes:
    """The filter in the kernel's format, compiled once. Raises NotInstalled.

    Any other failure is a RuntimeError: what worked before must not end as a missing layer.
    """
    program, problem = _compile_in_another_process()
    if problem:
        raise NotInstalled(problem)
    return program


@cache
def _compile_in_another_process() -> tuple[bytes, str]:
    """The program, or the reason why the compiler is not installed.

    The compiler imports a fifth of the modules of the fork server. In a process of its own, they do
    not take part in every fork, nor do the functions that some of them run after one.
    """
    from_compiler, to_caller = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with open(to_caller, "wb") as answer:
                _compile(answer)
            status = 0
        finally:
            os._exit(status)
    os.close(to_caller)
    with open(from_compiler, "rb") as answer:
        kind, content = answer.read(1), answer.read()
    status = os.waitpid(pid, 0)[1]
    if status != 0 or not content:
        raise RuntimeError(f"the system call filter cannot be compiled (status {status})")
    return (content, "") if kind == b"P" else (b"", content.decode())


def _compile(answer: IO[bytes]) -> None:
    """Write P and the program, or N and the reason why libseccomp is not installed."""
    try:
        import pyseccomp  # noqa: PLC0415
    except (ImportError, RuntimeError, OSError) as error:
        # pyseccomp raises RuntimeError when libseccomp.so.2 is not installed.
        answer.write(b"N" + (str(error) or type(error).__name__).encode())
        return
    allow_list = pyseccomp.SyscallFilter(pyseccomp.KILL_PROCESS)
    for name in ALLOWED_SYSCALLS:
        # "time" exists only on some architectures.
        if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) >= 0:
            allow_list.add_rule(pyseccomp.ALLOW, name)
    no_exec = pyseccomp.Arg(2, pyseccomp.MASKED_EQ, PROT_EXEC, 0)
    for name in MEMORY_SYSCALLS:
        allow_list.add_rule(pyseccomp.ALLOW, name, no_exec)
    answer.write(b"P")
    answer.flush()
    allow_list.export_bpf(answer)


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
