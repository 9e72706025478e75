"""A connection that neither waits for ever nor is handed out dead."""

import select

import psycopg
from django.conf import settings
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

# The server gives up a slow statement itself; only one that has fallen silent is left to this.
SILENCE_SECONDS = 5


class PatientConnection(psycopg.Connection):
    """Gives the server up when it stays silent for longer than a statement may take.

    A frozen server keeps its TCP connections, so that nothing else would end the wait.
    """

    may_wait_seconds: float | None = settings.DATABASE_TIMEOUT_SECONDS + SILENCE_SECONDS

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, timeout or self.may_wait_seconds)
        except psycopg.OperationalError:
            # What this connection says next would be the answer to the statement given up.
            if self.info.transaction_status == TransactionStatus.ACTIVE:
                self.close()
            raise

    def is_dropped(self) -> bool:
        """Whether the server has hung up, or says something unasked, which is its farewell.

        One system call instead of a query, so that it can be asked before each use.
        """
        if self.closed:
            return True
        events = select.poll()
        events.register(self.fileno(), select.POLLIN)
        return bool(events.poll(0))
