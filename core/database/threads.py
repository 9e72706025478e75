"""A thread pool whose threads use the database."""

from concurrent.futures import ThreadPoolExecutor

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


class DatabaseThreads(ThreadPoolExecutor):
    """Closes the database connections of its threads when it shuts down and waits for them.

    Otherwise they would stay open until the garbage collector finds them, and a pool of connections
    would never get its own back.
    """

    def __init__(self, most: int, name: str = "") -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        super().__init__(most, thread_name_prefix=name, initializer=self._note_connections)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        while wait and self._connections:
            database = self._connections.pop()
            # Its own thread, which alone may close it otherwise, has ended.
            database.inc_thread_sharing()
            database.close()

    def _note_connections(self) -> None:
        self._connections += connections.all()
