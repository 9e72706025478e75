"""What a worker and its parent tell each other, and whether this node is about to stop.

One byte that processes share with those that they fork: the server's parent says it, every worker
knows it.
"""

import mmap

_READY, _RETIRING = 0, 1


class Lifecycle:
    """Two flags in memory that both see: made before the fork."""

    def __init__(self) -> None:
        self._flags = mmap.mmap(-1, 2)

    def become_ready(self) -> None:
        self._flags[_READY] = 1

    def retire(self) -> None:
        """Asks to be replaced. Until its successor is ready, the worker goes on."""
        self._flags[_RETIRING] = 1

    @property
    def is_ready(self) -> bool:
        return self._flags[_READY] == 1

    @property
    def is_retiring(self) -> bool:
        return self._flags[_RETIRING] == 1


_flag = mmap.mmap(-1, 1)


def start_draining() -> None:
    """From now on /readyz says 503."""
    _flag[0] = 1


def is_draining() -> bool:
    return _flag[0] == 1
