"""Sockets that listen at the same address, among which the kernel spreads new connections."""

import contextlib
import ctypes
import socket
import struct
from typing import Any

from gunicorn.sock import create_sockets

# Not in the socket module: asm-generic/socket.h, linux/filter.h.
_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)


def reserve(host: str, port: int) -> socket.socket:
    """A socket that is bound there and hears nothing: the web workers may join it, nobody else.

    Raises OSError where another server is there, or has reserved it.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # Says why where somebody listens.
    socket.create_server(address[:2], family=family).close()
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of an earlier server that are still closing do not count.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        reserved.close()
        raise
    return reserved


def listen(host: str, port: int, *, count: int, cfg: Any, log: Any) -> list[Any]:
    """So many of gunicorn's sockets. Raises OSError."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    descriptors = []
    for _ in range(count):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(cfg.backlog)
        descriptors.append(listener.detach())
    listeners: list[Any] = create_sockets(cfg, log, descriptors)
    return listeners


def ignore_newcomers(listener: Any) -> None:
    """Who connects from now on finds nobody; who stands in the queue may still be accepted.

    Without it, connections may still come in between the last look into the queue and the end
    of the socket, and are reset. Some kernels let only root do this; then a balancer that heeds
    /readyz has to be enough.
    """
    program = ctypes.create_string_buffer(_RETURN_NOTHING)
    filter_program = struct.pack("HL", 1, ctypes.addressof(program))
    with contextlib.suppress(PermissionError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)
