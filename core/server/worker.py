"""A web worker: gunicorn's threaded worker in which no thread waits for a client."""

import errno
import selectors
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from gunicorn import util
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from core.node_state import Lifecycle, is_draining, note_that_this_service_serves
from core.server.client import Arrival, Connection
from core.server.reply import HttpReply
from core.server.request import environ_of_all_requests
from core.server.request_reader import BodyNotReceived, RequestReader
from core.server.slow_clients import LingeringConnections, SlowClients
from core.waiting import READABLE
from core.waiting.scheduler import Scheduler, separate_connections

# The longest time that a connection waits in the queue of a worker that accepts none.
NEIGHBOUR_CHECK_SECONDS = 0.2
HEARTBEAT_SECONDS = 1.0
# How long a thread waits for the next request of its client. Proxies and programs that call in a
# loop send it at once.
NEXT_REQUEST_SECONDS = 0.001
# The same for a green thread, which costs little while it waits.
GREEN_NEXT_REQUEST_SECONDS = 0.1
# Larger requests would hold up the main thread.
GREEN_REQUEST_BYTES = 64 * 1024
_LEFT_OR_NOT_YET = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED)
_DISCONNECTED = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class SteadyThreadPool(ThreadPoolExecutor):
    """Queues calls for the threads that there are if the system refuses another one.

    ``ThreadPoolExecutor`` queues the call too, but then raises, which would end the worker.
    """

    def start_first_thread(self) -> None:
        """So that a worker without any other thread still answers, which /readyz needs."""
        self.submit(int)

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise


class MoonhookWorker(ThreadWorker):
    """Listens on a socket of its own, and accepts from the others' when they are slow to.

    The main thread waits for the rest of requests and for slow readers, so a connection takes a
    thread only while a whole request is served. Small requests that rarely block do not leave the
    main thread: it serves them in green threads. If no other connection waits for a thread, the
    thread stays with its client for a moment: passing a connection to the main thread and back
    costs as much as a small request.
    """

    listener_index = 0
    has_stop_signal = False
    alive: bool
    max_requests: int
    _accepting: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lifecycle = Lifecycle()
        # At max_requests gunicorn would stop at once, and start the successor afterwards.
        self._retires_after, self.max_requests = self.max_requests, sys.maxsize
        self._next_neighbour_check_at = 0.0
        self._next_heartbeat_at = 0.0
        # Connections that wait for a thread.
        self._queued: set[Connection] = set()

    def init_process(self) -> None:
        self._neighbours = selectors.DefaultSelector()
        for index, listener in enumerate(self.sockets):
            listener.setblocking(False)
            if index != self.listener_index:
                self._neighbours.register(listener, selectors.EVENT_READ)
        super().init_process()

    def get_thread_pool(self) -> SteadyThreadPool:
        return SteadyThreadPool(max_workers=self.cfg.threads)

    def run(self) -> None:
        self.tpool.start_first_thread()
        self._slow_clients = SlowClients(
            self.poller,
            max_bytes=settings.CLIENT_BUFFER_BYTES,
            on_ready=self.enqueue_req,
            on_end=self._finish,
        )
        self._lingering = LingeringConnections(self.poller, on_end=self._close)
        self._green_threads = Scheduler(
            most=self.cfg.threads, executor=self.tpool, wake_up=self.method_queue.defer
        )
        self._environ = environ_of_all_requests(self.cfg)
        separate_connections()
        self.poller.register(
            self._green_threads, selectors.EVENT_READ, self._green_threads.read_events
        )
        super().run()

    # --- The main loop -------------------------------------------------------------------------

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        most = min(timeout, NEIGHBOUR_CHECK_SECONDS)
        super().wait_for_and_dispatch_events(self._green_threads.seconds_until_due(most))
        self._green_threads.run_ready()
        if is_draining():
            # Each reply now announces that the connection will be closed.
            self.max_keepalived = 0
        if self.nr >= self._retires_after and not self.lifecycle.is_retiring:
            self.log.info("Asking to be replaced after %d requests", self.nr)
            self.lifecycle.retire()
        if self.alive and self._accepting and time.monotonic() >= self._next_neighbour_check_at:
            self._accept_from_neighbours()

    def notify(self) -> None:
        """Sends the parent a heartbeat, at most once a second."""
        now = time.monotonic()
        if now >= self._next_heartbeat_at:
            self._next_heartbeat_at = now + HEARTBEAT_SECONDS
            super().notify()

    def murder_pending(self) -> None:
        super().murder_pending()
        now = time.monotonic()
        self._slow_clients.give_up_late(now)
        self._lingering.end_expired(now)

    # --- Connections ---------------------------------------------------------------------------

    def set_accept_enabled(self, enabled: bool) -> None:
        if enabled == self._accepting:
            return
        own = self.sockets[self.listener_index]
        if enabled:
            self.poller.register(own, selectors.EVENT_READ, self.accept)
            self.lifecycle.become_ready()
            note_that_this_service_serves()
        else:
            self.poller.unregister(own)
            if not self.alive and is_draining():
                self._accept_the_last()
        self._accepting = enabled

    def accept(self, listener: Any) -> None:
        """Accepts one connection, which gets a thread when its first bytes arrive."""
        try:
            client_sock, client_address = listener.accept()
        except OSError as error:
            if error.errno in _LEFT_OR_NOT_YET + _TOO_MANY_FILES:
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

    def _accept_from_neighbours(self) -> None:
        """Accepts connections that another worker should have accepted by now."""
        self._next_neighbour_check_at = time.monotonic() + NEIGHBOUR_CHECK_SECONDS
        for key, _ in self._neighbours.select(0):
            self._accept_all(key.fileobj)

    def _accept_the_last(self) -> None:
        """Empties all queues when the server stops, so that every queued client is answered."""
        for listener in self.sockets:
            self._accept_all(listener)
            listener.close()

    def _accept_all(self, listener: Any) -> None:
        before = -1
        while before < self.nr_conns < self.worker_connections:
            before = self.nr_conns
            self.accept(listener)

    def _linger(self, connection: Connection) -> None:
        if self._lingering.add(connection):
            self.nr_conns += 1

    def _close(self, connection: Connection) -> None:
        self.nr_conns -= 1
        connection.close()

    # --- Requests ------------------------------------------------------------------------------

    def enqueue_req(self, conn: Connection) -> None:
        if self._is_for_green_thread(conn):
            self._green_threads.start(partial(self._serve_in_green_thread, conn))
            return
        self._queued.add(conn)
        super().enqueue_req(conn)

    def handle(self, conn: Connection) -> Any:
        """Serves requests in a thread, until the client sends no more at once."""
        self._queued.discard(conn)
        while (outcome := self._answer(conn)) is True and self._sends_more_at_once(conn):
            pass
        return outcome

    def _is_for_green_thread(self, conn: Connection) -> bool:
        """Whether the whole request is here, is small, and is of a kind that hardly blocks."""
        if conn.sock.receive(once=True) is not Arrival.READY:
            return False
        request = conn.sock.reader.request
        return (
            request is not None
            and conn.sock.buffered_bytes <= GREEN_REQUEST_BYTES
            and settings.GREEN_THREAD_REQUESTS.match(request.line) is not None
        )

    def _serve_in_green_thread(self, conn: Connection) -> None:
        outcome: bool | Arrival = False
        try:
            outcome = self._answer(conn)
            while outcome is True and self._green_client_sends_more(conn):
                if not self._is_for_green_thread(conn):
                    break
                outcome = self._answer(conn)
        finally:
            self._finish(conn, outcome)

    def _green_client_sends_more(self, conn: Connection) -> bool:
        if not self.alive or is_draining() or conn.sock.has_unsent:
            return False
        if self._green_threads.has_queue:
            # A client that keeps sending would keep the others waiting.
            return False
        if conn.sock.has_received:
            return True
        deadline = time.monotonic() + GREEN_NEXT_REQUEST_SECONDS
        return bool(self._green_threads.wait_idly_for(conn.sock.fileno(), READABLE, deadline))

    def _exchange(self, conn: Connection, reply: HttpReply, environ: dict[str, Any]) -> bool:
        """Calls the application and sends its reply.

        Does the same as gunicorn's ``handle_request``, but does not call ``pre_request`` and
        ``post_request``, which our configuration does not set.

        Returns whether the connection may be kept alive, as the reply says if it is whole. Raises
        what the application raised if nothing was sent.
        """
        started = time.monotonic()
        self.nr += 1
        is_crowded = len(self.keepalived_conns) >= self.max_keepalived
        if not self.alive or not self.cfg.keepalive or is_crowded:
            reply.force_close()
        try:
            pieces = self.wsgi(environ, reply.start_response)
            try:
                for piece in pieces:
                    reply.write(piece)
                reply.close()
            finally:
                duration = timedelta(seconds=time.monotonic() - started)
                self.log.access(reply, reply.req, environ, duration)
                if hasattr(pieces, "close"):
                    pieces.close()
        except (Exception, SystemExit) as error:
            if reply.is_whole:
                self.log.exception("The application failed after its reply")
            elif reply.headers_sent and not isinstance(error, OSError):
                self.log.exception("The application failed in the middle of its reply")
                return False
            else:
                raise
        return not reply.should_close()

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """Runs in the main thread after ``handle``."""
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
        elif outcome is True:
            self._wait_for_next_request(conn)
        else:
            super().finish_request(conn, fs)

    def _wait_for_next_request(self, conn: Connection) -> None:
        conn.set_timeout()
        if not self.alive:
            conn.timeout = min(conn.timeout, time.monotonic() + STOP_KEEPALIVE_LINGER)
        self.keepalived_conns.append(conn)
        self.poller.register(
            conn.sock, selectors.EVENT_READ, partial(self.on_client_socket_readable, conn)
        )

    def _finish(self, conn: Connection, outcome: bool | Arrival) -> None:
        done: Future[bool | Arrival] = Future()
        done.set_result(outcome)
        self.finish_request(conn, done)

    def _answer(self, conn: Connection) -> bool | Arrival:
        """Whether the connection may be kept alive; ``PART`` if the request is incomplete."""
        arrival = conn.sock.receive()
        if arrival is Arrival.PART:
            return arrival
        if arrival is Arrival.LEFT:
            return False
        keeps_alive = self._answer_request(conn, conn.sock.reader)
        if keeps_alive:
            conn.sock.end_request()
        return keeps_alive

    def _answer_request(self, conn: Connection, reader: RequestReader) -> bool:
        request = reader.request
        if request is None or reader.refusal is not None:
            self.handle_error(request, conn.sock, conn.client, reader.refusal)
            return False
        environ = request.environ(self._environ, reader.open_body(), conn.client, conn.server)
        reply = HttpReply(request, conn.sock, self.cfg)
        if not reader.is_whole:
            reply.force_close()
        try:
            return self._exchange(conn, reply, environ)
        except BodyNotReceived:
            self._refuse_large_body(conn)
        except OSError as error:
            if error.errno in _DISCONNECTED:
                self.log.debug("The client has disconnected")
            else:
                self.log.exception("Error handling request")
        except Exception as error:  # noqa: BLE001 (it logs it)
            self.handle_error(request, conn.sock, conn.client, error)
        return False

    def _refuse_large_body(self, conn: Connection) -> None:
        close_old_connections()
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        try:
            util.write_error(conn.sock, status, status.phrase, "")
        except OSError:
            self.log.debug("The client has disconnected")

    def _sends_more_at_once(self, conn: Connection) -> bool:
        if self._queued or not self.alive or is_draining() or conn.sock.has_unsent:
            return False
        return conn.sock.has_received or conn.sock.is_readable_within(NEXT_REQUEST_SECONDS)

    # --- The end -------------------------------------------------------------------------------

    def handle_exit(self, sig: int, frame: Any) -> None:
        # For every sender of the signal, the parent should start the successor first.
        self.lifecycle.retire()
        super().handle_exit(sig, frame)
