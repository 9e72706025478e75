"""A psycopg connection that bounds its waits and detects when the server has closed it."""

import select

import psycopg
from django.conf import settings
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

# The server itself ends slow statements, so this applies only to a server that does not respond.
SILENCE_SECONDS = 5


class TimeLimitedConnection(psycopg.Connection):
    """Stops waiting for a server that stays silent for longer than a statement may take.

    A frozen server keeps its TCP connections open, so nothing else would end the wait.
    """

    max_wait_seconds: float | None = settings.DATABASE_TIMEOUT_SECONDS + SILENCE_SECONDS

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, timeout or self.max_wait_seconds)
        except psycopg.OperationalError:
            # The next data on this connection would be the result of the abandoned statement.
            if self.info.transaction_status == TransactionStatus.ACTIVE:
                self.close()
            raise

    def is_dropped(self) -> bool:
        """Whether the server has closed the connection or sent data unasked, before it closes it.

        Makes one system call instead of a query, so it can be called before each use.
        """
        if self.closed:
            return True
        events = select.poll()
        events.register(self.fileno(), select.POLLIN)
        return bool(events.poll(0))
