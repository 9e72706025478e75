"""Listening sockets on one address, across which the kernel spreads new connections."""

import contextlib
import ctypes
import socket
import struct
from typing import Any

from gunicorn.sock import create_sockets

# Missing from the socket module: see asm-generic/socket.h and linux/filter.h.
_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)


def reserve(host: str, port: int) -> socket.socket:
    """Binds a socket that does not listen: the web workers may share its port, others may not.

    Raises OSError if another server listens there or has reserved the port.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # Raises the clearer error if another server listens.
    socket.create_server(address[:2], family=family).close()
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Ignores connections of an earlier server that are still closing.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        reserved.close()
        raise
    return reserved


def listen(host: str, port: int, *, count: int, cfg: Any, log: Any) -> list[Any]:
    """Opens ``count`` of gunicorn's sockets on the address. Raises OSError."""
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


def reject_new_connections(listener: Any) -> None:
    """Drops new connections; those in the queue can still be accepted.

    Connections that arrive between the last ``accept`` and the close would otherwise be reset.
    Some kernels allow this only to root; then a balancer that watches /readyz has to suffice.
    """
    program = ctypes.create_string_buffer(_RETURN_NOTHING)
    filter_program = struct.pack("HL", 1, ctypes.addressof(program))
    with contextlib.suppress(PermissionError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)
