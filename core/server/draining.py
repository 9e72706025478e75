"""Whether this node is about to stop: it still answers, but should be sent nothing new.

One byte that processes share with those that they fork: the server's parent says it, every worker
knows it.
"""

import mmap

_flag = mmap.mmap(-1, 1)


def start_draining() -> None:
    """From now on /readyz says 503."""
    _flag[0] = 1


def is_draining() -> bool:
    return _flag[0] == 1
