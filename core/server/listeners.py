"""Listening sockets on one address, across which the kernel spreads new connections."""

import contextlib
import ctypes
import socket
import struct
from typing import Any

# Missing from the socket module: see asm-generic/socket.h and linux/filter.h.
_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)


def reserve(host: str, port: int, *, count: int) -> list[socket.socket]:
    """Binds sockets that do not listen yet, on a port that others then cannot share.

    Raises OSError if another server listens there or has reserved the port.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # Raises the clearer error if another server listens.
    socket.create_server(address[:2], family=family).close()
    reserved: list[socket.socket] = []
    try:
        for _ in range(count):
            reserved.append(each := socket.socket(family, socket.SOCK_STREAM))
            # Ignores connections of an earlier server that are still closing.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # The first one shares the port with nobody.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, len(reserved) > 1)
            each.bind(address)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        for each in reserved:
            each.close()
        raise
    return reserved


def reject_new_connections(listener: Any) -> None:
    """Drops new connections; those in the queue can still be accepted.

    Connections that arrive between the last ``accept`` and the close would otherwise be reset.
    Some kernels allow this only to root; then a balancer that watches /readyz has to suffice.
    """
    program = ctypes.create_string_buffer(_RETURN_NOTHING)
    filter_program = struct.pack("HL", 1, ctypes.addressof(program))
    with contextlib.suppress(PermissionError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)
