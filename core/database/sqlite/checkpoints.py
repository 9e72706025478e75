"""Runs the checkpoints of SQLite's WAL in a thread, instead of in commits of green threads.

By default, a commit that finds a thousand pages in the WAL copies them into the database. All
green threads would wait for that, after every hundredth call or so. Writers do not wait for a
checkpoint of another connection (https://www.sqlite.org/wal.html#concurrency).
"""

import logging
from functools import partial

from django.db import DatabaseError, connections

from core import green_threads

# In rows. Recording a run writes about nine pages.
CHANGES_BETWEEN = 100
# The WAL's pages at which a commit of a green thread runs the checkpoint after all.
GREEN_PAGES = 8000

logger = logging.getLogger(__name__)


class Checkpoints:
    """Counts the changes of this process, and starts a checkpoint when there are enough."""

    def __init__(self) -> None:
        self._changes = 0
        self._is_started = False

    def note(self, alias: str, changes: int) -> None:
        """Adds the number of rows that a commit changed. Only in a green thread."""
        self._changes += changes
        if self._changes >= CHANGES_BETWEEN and not self._is_started:
            self._changes, self._is_started = 0, True
            try:
                green_threads.start_in_thread(partial(self._run, alias))
            except RuntimeError:
                # The process is stopping, and its threads have ended.
                self._is_started = False

    def _run(self, alias: str) -> None:
        try:
            with connections[alias].cursor() as cursor:
                # PASSIVE copies what it can without making others wait.
                cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except DatabaseError as error:
            logger.warning("Checkpoint failed, a later commit retries it: %s", error)
        finally:
            self._is_started = False


checkpoints = Checkpoints()
