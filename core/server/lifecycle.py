"""Flags in shared memory: is a worker ready, should it be replaced, is this node draining.

Processes share them with the processes that they fork, so they are created before the fork.
"""

import mmap

_READY, _RETIRING = 0, 1


class Lifecycle:
    """The flags of one worker, which its parent reads too."""

    def __init__(self) -> None:
        self._flags = mmap.mmap(-1, 2)

    def become_ready(self) -> None:
        self._flags[_READY] = 1

    def retire(self) -> None:
        """Requests a replacement. The worker serves on until its successor is ready."""
        self._flags[_RETIRING] = 1

    @property
    def is_ready(self) -> bool:
        return self._flags[_READY] == 1

    @property
    def is_retiring(self) -> bool:
        return self._flags[_RETIRING] == 1


_draining = mmap.mmap(-1, 1)


def start_draining() -> None:
    """Makes /readyz answer 503 from now on. Called by the arbiter."""
    _draining[0] = 1


def is_draining() -> bool:
    return _draining[0] == 1
