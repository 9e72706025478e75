"""The C library's free memory."""

import ctypes

# The GNU C library's own; others give memory back by themselves.
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back_memory() -> None:
    """To the system: memory in small pieces is kept for later otherwise, however much it is."""
    if _malloc_trim is not None:
        _malloc_trim(0)
