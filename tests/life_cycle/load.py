"""Callers of a hook, who never stop calling until they are told to."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

RUN_ID = "Moonhook-Run-Id"


@dataclass
class Load:
    url: str
    host: str | None = None
    """The Host header, where that is not what the address says."""
    runs: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, *, callers: int = 4) -> Iterator["Load"]:
        """Half of the callers keep their connections, half open one for each call."""
        threads = [
            threading.Thread(target=self._call_on, args=(number % 2 == 0,))
            for number in range(callers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join(60)

    def _call_on(self, keeps_connection: bool) -> None:
        address = urlsplit(self.url)
        headers = {"Host": self.host} if self.host else {}
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        while not self.is_over.is_set():
            try:
                connection.request("POST", address.path, b"{}", headers)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                connection.close()
                self.is_over.wait(0.05)
                continue
            self.statuses.add(response.status)
            self.runs.append(response.headers[RUN_ID])
            if not keeps_connection:
                connection.close()
        connection.close()
