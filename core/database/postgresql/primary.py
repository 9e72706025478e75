"""Which of several PostgreSQL servers is the primary, as far as this process knows.

libpq finds it at connect time (``target_session_attrs=read-write``). This module handles what
happens later: a frozen server keeps its connections open, and a demoted one answers from old data.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Any

import psycopg

logger = logging.getLogger(__name__)

Server = tuple[str, str]
"""Host and port."""

# Per server. psycopg waits for at least two seconds.
CONNECT_SECONDS = 2
_DEFAULT_PORT = "5432"


class Primary:
    """Remembers the server of the newest connection, and looks for another one on request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._is_looking = False

    def is_at(self, server: Server) -> bool:
        return self._server is None or self._server == server

    def note(self, server: Server) -> None:
        with self._lock:
            before, self._server = self._server, server
        if before not in (None, server):
            logger.warning("The primary is now %s, port %s", *server)

    def first(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Connection parameters that try the known primary first.

        Otherwise each new connection would wait for a frozen server that is listed before it.
        """
        servers = servers_in(parameters)
        # Sorting is stable: the others keep their order.
        servers.sort(key=lambda server: server != self._server)
        if len(servers) == 1:
            return dict(parameters)
        return {**parameters, **_joined(servers), "connect_timeout": CONNECT_SECONDS}

    def look_elsewhere(self, parameters: Mapping[str, Any], server: Server) -> None:
        """Start a thread that finds out whether a server other than this one is the primary."""
        with self._lock:
            if self._is_looking:
                return
            self._is_looking = True
        others = [each for each in servers_in(parameters) if each != server]
        thread = threading.Thread(
            target=self._look, args=(parameters, others), daemon=True, name="primary search"
        )
        try:
            thread.start()
        except RuntimeError as error:
            # The system has no thread left now. The caller asks again while it waits.
            logger.warning("No search for another primary: %s", error)
            self._is_looking = False

    def _look(self, parameters: Mapping[str, Any], others: list[Server]) -> None:
        try:
            for server in others:
                if _accepts(parameters, server):
                    self.note(server)
                    return
        finally:
            self._is_looking = False


def servers_in(parameters: Mapping[str, Any]) -> list[Server]:
    """The servers that connection parameters list, as libpq reads them."""
    hosts = str(parameters.get("host") or "").split(",")
    ports = str(parameters.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return [(host, port or _DEFAULT_PORT) for host, port in zip(hosts, ports, strict=True)]


def _joined(servers: list[Server]) -> dict[str, str]:
    hosts, ports = zip(*servers, strict=True)
    return {"host": ",".join(hosts), "port": ",".join(ports)}


def _accepts(parameters: Mapping[str, Any], server: Server) -> bool:
    own = {**parameters, **_joined([server]), "connect_timeout": CONNECT_SECONDS}
    try:
        psycopg.Connection.connect(**own).close()
    except psycopg.Error:
        # A standby, or a server that is away, too.
        return False
    return True


primary = Primary()
