"""The system calls that a child may make, as a program for the kernel's filter (seccomp).

Role in a run: none; each child loads the program as the last step of its lockdown.
"""

from __future__ import annotations

import os
from functools import cache
from typing import IO

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
