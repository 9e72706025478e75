"""The limit of open files, which a process with many connections and sandboxes would reach."""

import os
import resource
import sys

# Fewer left may be too few for a new connection to the database and a new sandbox.
FEW_FILES = 16


def allow_open_files(count: int) -> int:
    """Raise the soft limit, usually 1,024, to this number, or as far as the hard one allows.

    Never lowers it. Returns the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return open_files_limit()


def open_files_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def are_few_files_left() -> bool:
    """Whether this process can open fewer than ``FEW_FILES`` more. Answers without any left."""
    try:
        opened = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (one system call an entry less)
    except OSError:
        return True
    return open_files_limit() - opened < FEW_FILES
