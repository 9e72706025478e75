"""A web worker."""

import errno
import os
import selectors
import socket
import sys
import time
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from gunicorn import util
from gunicorn.workers.gthread import ThreadWorker

from core.server.client import Arrival, ClientSocket, Connection, RequestCutOff
from core.server.lifecycle import Lifecycle, is_draining
from core.server.services import note_that_this_service_serves, services_of_this_node
from core.server.slow_clients import SlowClients

# How long a connection waits at most at the socket of a worker that takes none.
NEIGHBOURS_EVERY_SECONDS = 0.2
HEARTBEAT_EVERY_SECONDS = 1.0
# How long a thread stays with a client that has been answered: proxies and machines that call in
# a row are there again at once.
STAY_SECONDS = 0.001
LINGER_SECONDS = 2.0
_DISCARDED_BYTES = 64 * 1024
_LEFT_OR_NOT_YET = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED)
_NO_ROOM = (errno.EMFILE, errno.ENFILE)


class MoonhookWorker(ThreadWorker):
    """gunicorn's threaded worker at a socket of its own, who helps out at those of the others.

    A connection costs no thread before its first byte is there, and no thread waits for the rest
    of a request or for a slow reader: the main thread does. While nobody else waits for a thread,
    it stays with its client for a moment: handing a connection to the main thread and back costs
    as much as a small request.
    """

    place = 0
    is_told_to_stop = False
    alive: bool
    max_requests: int
    ppid: int
    _accepting: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lifecycle = Lifecycle()
        # gunicorn would stop at this number at once, and be replaced afterwards.
        self._retires_after, self.max_requests = self.max_requests, sys.maxsize
        self._looks_next_at = 0.0
        self._notifies_next_at = 0.0
        # Connections that wait for a thread.
        self._queued: set[Connection] = set()
        # In the order in which they are given up.
        self._lingering: dict[Connection, None] = {}

    def init_process(self) -> None:
        self._neighbours = selectors.DefaultSelector()
        for place, listener in enumerate(self.sockets):
            listener.setblocking(False)
            if place != self.place:
                self._neighbours.register(listener, selectors.EVENT_READ)
        super().init_process()

    def run(self) -> None:
        self._slow_clients = SlowClients(
            self.poller,
            max_bytes=settings.CLIENT_BUFFER_BYTES,
            on_ready=self.enqueue_req,
            on_end=self._go_on,
        )
        super().run()

    def handle_exit(self, sig: int, frame: Any) -> None:
        # Whoever asked, the successor is made at once and not when this one has gone.
        self.lifecycle.retire()
        super().handle_exit(sig, frame)

    def set_accept_enabled(self, enabled: bool) -> None:
        if enabled == self._accepting:
            return
        own = self.sockets[self.place]
        if enabled:
            self.poller.register(own, selectors.EVENT_READ, self.accept)
            self.lifecycle.become_ready()
            if not self._is_orphan():
                note_that_this_service_serves(self.ppid)
        else:
            self.poller.unregister(own)
            if not self.alive and (is_draining() or self._is_orphan()):
                self._take_leave()
        self._accepting = enabled

    def accept(self, listener: Any) -> None:
        """Takes one connection; a thread gets it when there is something to read."""
        try:
            client_sock, client_address = listener.accept()
        except OSError as error:
            if error.errno in _LEFT_OR_NOT_YET + _NO_ROOM:
                return
            raise
        self.nr_conns += 1
        connection = Connection(
            self.cfg, client_sock, client_address, listener.getsockname(), linger=self._linger
        )
        connection.set_timeout()
        self.pending_conns.append(connection)
        self.poller.register(
            connection.sock,
            selectors.EVENT_READ,
            partial(self.on_pending_socket_readable, connection),
        )

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        super().wait_for_and_dispatch_events(min(timeout, NEIGHBOURS_EVERY_SECONDS))
        if is_draining() or self._is_orphan():
            # Each reply says that the connection ends with it.
            self.max_keepalived = 0
        if self.nr >= self._retires_after and not self.lifecycle.is_retiring:
            self.log.info("Asking to be replaced after %d requests", self.nr)
            self.lifecycle.retire()
        if self.alive and self._accepting and time.monotonic() >= self._looks_next_at:
            self._help_neighbours()

    def notify(self) -> None:
        """A sign of life for the parent: not at each of many events a second."""
        now = time.monotonic()
        if now >= self._notifies_next_at:
            self._notifies_next_at = now + HEARTBEAT_EVERY_SECONDS
            super().notify()

    def enqueue_req(self, conn: Connection) -> None:
        self._queued.add(conn)
        super().enqueue_req(conn)

    def handle(self, conn: Connection) -> Any:
        self._queued.discard(conn)
        while (outcome := self._answer(conn)) is True and self._comes_again_at_once(conn):
            pass
        return outcome

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """In the main thread, after ``handle``."""
        self._slow_clients.note_answer(conn)
        outcome = None if fs.cancelled() or fs.exception() else fs.result()
        if outcome is Arrival.PART:
            self._slow_clients.wait_for_request(conn)
        elif conn.sock.has_unsent and conn.sock.fileno() != -1:
            if outcome is not True:
                conn.sock.drop_received()
            self._slow_clients.wait_for_reader(conn, keeps_alive=outcome is True)
        elif outcome is True and conn.sock.has_received:
            self.enqueue_req(conn)
        else:
            super().finish_request(conn, fs)

    def _go_on(self, conn: Connection, keeps_alive: bool) -> None:
        """After a slow client: as after any other."""
        done: Future[bool] = Future()
        done.set_result(keeps_alive)
        self.finish_request(conn, done)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        if conn.sock.is_told_to_continue:
            req._expected_100_continue = False
        conn.sock.hold_headers()
        try:
            return super().handle_request(req, conn)
        finally:
            conn.sock.send_held()

    def _comes_again_at_once(self, conn: Connection) -> bool:
        if self._queued or not self.alive or is_draining() or conn.sock.has_unsent:
            return False
        return conn.sock.has_received or conn.sock.is_readable_within(STAY_SECONDS)

    def _answer(self, conn: Connection) -> bool | Arrival:
        """Whether the connection may be kept alive; ``PART`` where the request is not there yet."""
        arrival = conn.sock.receive()
        if arrival is Arrival.PART:
            return arrival
        if arrival is Arrival.LEFT:
            return False
        try:
            keeps_alive = super().handle(conn) is True and conn.sock.is_request_read
        except RequestCutOff:
            self._refuse_what_came(conn)
            return False
        if keeps_alive:
            conn.sock.end_request()
        return keeps_alive

    def _refuse_what_came(self, conn: Connection) -> None:
        close_old_connections()
        is_too_large = conn.sock.is_request_too_large
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if is_too_large else HTTPStatus.BAD_REQUEST
        try:
            util.write_error(conn.sock, status, status.phrase, "")
        except OSError:
            self.log.debug("It has left")

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        if not conn.sock.is_request_whole:
            return False
        try:
            return bool(super()._keepalive_after(conn, keepalive))
        except RequestCutOff:
            # It has its answer already, and goes on sending what nobody wants.
            return False

    def _linger(self, connection: Connection) -> None:
        """Closes it when its client has: what is sent to a closed one would take the reply away.

        gunicorn waits for that itself, and for two seconds serves nobody else.
        """
        client = connection.sock
        # With a body in it, which would outlast the answer.
        connection.parser = None
        client.drop_received()
        try:
            client.shutdown(socket.SHUT_WR)
        except OSError:
            client.close()
            return
        self.nr_conns += 1
        connection.timeout = time.monotonic() + LINGER_SECONDS
        self._lingering[connection] = None
        self.poller.register(client, selectors.EVENT_READ, partial(self._hear_out, connection))

    def _hear_out(self, connection: Connection, client: ClientSocket) -> None:
        try:
            has_ended = not client.recv_now(_DISCARDED_BYTES)
        except BlockingIOError:
            return
        except OSError:
            has_ended = True
        if has_ended:
            self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        del self._lingering[connection]
        self.poller.unregister(connection.sock)
        self.nr_conns -= 1
        connection.close()

    def murder_pending(self) -> None:
        super().murder_pending()
        now = time.monotonic()
        self._slow_clients.give_up_late(now)
        while self._lingering and (first := next(iter(self._lingering))).timeout <= now:
            self._let_go(first)

    def _cap_keepalive(self, deadline: float) -> None:
        # An orphan ends as soon as it can.
        super()._cap_keepalive(time.monotonic() if self._is_orphan() else deadline)

    def is_parent_alive(self) -> bool:
        if self._is_adopted():
            return True
        self.alive = self.alive and super().is_parent_alive()
        return self.alive

    def _is_orphan(self) -> bool:
        """Whether the parent has died, and with it everybody who would replace this worker."""
        return self.ppid != os.getppid()

    def _is_adopted(self) -> bool:
        """Whether an orphan is to serve on: it will be stopped when its successors are ready."""
        services = services_of_this_node()
        is_adopted = services is not None and services.is_child_of_parent()
        return is_adopted and not is_draining()

    def _help_neighbours(self) -> None:
        """Takes whoever still waits where another worker should have looked long ago."""
        self._looks_next_at = time.monotonic() + NEIGHBOURS_EVERY_SECONDS
        for key, _ in self._neighbours.select(0):
            self._accept_all(key.fileobj)

    def _take_leave(self) -> None:
        """The server stops: each client that was let in is answered, by one worker or another."""
        for listener in self.sockets:
            self._accept_all(listener)
            listener.close()

    def _accept_all(self, listener: Any) -> None:
        before = -1
        while before < self.nr_conns < self.worker_connections:
            before = self.nr_conns
            self.accept(listener)
