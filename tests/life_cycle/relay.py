"""A TCP port that forwards to another one once it is opened."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def relay(port: int, target: tuple[str, int]) -> Iterator[None]:
    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=_accept, args=(listener, target), daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, target: tuple[str, int]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = socket.create_connection(target)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()
