"""Collects notes of calls, which a thread of the process writes after the answers.

Best effort: a caller neither waits nor fails for a note, a flood drops most of them, and a killed
process loses the last ones.
"""

import logging
import threading
import time
import uuid
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connections

from core.caches import BoundedCache
from hooks.flows.stored_notes import (
    HandshakeNote,
    Notes,
    RefusalCounter,
    RefusedCallNote,
    Use,
    UsedCredential,
    store,
)
from hooks.metrics import SENDER_REFUSALS

logger = logging.getLogger(__name__)

MAX_WAITING = 200
MAX_WAITING_BYTES = 16 * 1024 * 1024
# Of one hook, or of one script for tokens that no hook has. Further ones are only counted.
MAX_PER_SECOND = 10
# Of calls whose token no hook has.
MAX_STRANGERS = 40
MAX_COUNTERS_OF_STRANGERS = 1_000
# Different hooks, reasons and credentials between two writes.
MAX_COUNTERS = 10_000
WRITE_SECONDS = 1.0
# Nobody waits for the evidence that a credential is in use.
WRITE_USES_SECONDS = 5.0
STOP_SECONDS = 5.0


class CallNotes:
    """Takes notes from all threads; ``start`` starts the thread that writes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes = Notes()
        self._waiting_bytes = 0
        # How many of each subject were taken in the current second.
        self._taken: BoundedCache[uuid.UUID, int] = BoundedCache(MAX_COUNTERS)
        self._is_failing = False
        self._has_notes = threading.Event()
        self._is_ending = threading.Event()
        self._thread: threading.Thread | None = None

    def add_refused(self, note: RefusedCallNote) -> None:
        SENDER_REFUSALS.labels(note.reason).inc()
        counter = RefusalCounter(
            note.organisation_id, note.script_id, note.subject, note.reason, note.at.date()
        )
        with self._lock:
            if note.hook_id is None:
                self._add_of_stranger(note, counter)
            else:
                if counter in self._notes.refusals or len(self._notes.refusals) < MAX_COUNTERS:
                    self._notes.refusals[counter] += 1
                if self._has_room_for(note, MAX_WAITING):
                    self._notes.refused.append(note)
                    self._waiting_bytes += len(note.body or b"")
        self._wake_up()

    def add_handshake(self, note: HandshakeNote) -> None:
        with self._lock:
            if len(self._notes.handshakes) < MAX_WAITING:
                self._notes.handshakes.append(note)
        self._wake_up()

    def add_use(self, credential: UsedCredential, at: datetime, client_address: str) -> None:
        with self._lock:
            uses = self._notes.uses
            before = uses.get(credential)
            if before is not None or len(uses) < MAX_COUNTERS:
                uses[credential] = Use((before.times if before else 0) + 1, at, client_address)
        self._wake_up()

    def _wake_up(self) -> None:
        if not self._has_notes.is_set():
            self._has_notes.set()

    def _add_of_stranger(self, note: RefusedCallNote, counter: RefusalCounter) -> None:
        """Anyone can make up addresses, so these take little of the room for known hooks."""
        counters, waiting = self._notes.strangers_refusals, self._notes.strangers
        if counter in counters or len(counters) < MAX_COUNTERS_OF_STRANGERS:
            counters[counter] += 1
        if len(waiting) < MAX_STRANGERS and self._has_room_for(note, MAX_WAITING):
            waiting.append(note)

    def _has_room_for(self, note: RefusedCallNote, most: int) -> bool:
        size = len(note.body or b"")
        if len(self._notes.refused) >= most or self._waiting_bytes + size > MAX_WAITING_BYTES:
            return False
        taken = self._taken.get(note.subject) or 0
        if taken >= MAX_PER_SECOND:
            return False
        self._taken.put(note.subject, taken + 1, until=int(time.monotonic()) + 1)
        return True

    # --- Writing -------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread. Call it after the fork."""
        self._thread = threading.Thread(target=self._write_forever, name="call notes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, which first writes what has been noted, within ``STOP_SECONDS``."""
        self._is_ending.set()
        self._has_notes.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def write(self, *, with_uses: bool = True) -> None:
        """Writes what has been noted; loses it if the database does not take it."""
        notes = self._take(with_uses=with_uses)
        if not notes:
            return
        try:
            store(notes)
        except (DatabaseError, InterfaceError) as error:
            if not self._is_failing:
                text = " ".join(str(error).split()) or type(error).__name__
                logger.warning("Refused calls are not noted: %s", text)
            self._is_failing = True
        else:
            self._is_failing = False

    def _take(self, *, with_uses: bool) -> Notes:
        with self._lock:
            taken, self._notes = self._notes, Notes()
            self._waiting_bytes = 0
            if not with_uses:
                taken.uses, self._notes.uses = {}, taken.uses
            return taken

    def _write_forever(self) -> None:
        uses_due_at = 0.0
        is_ending = False
        while not is_ending:
            self._has_notes.wait()
            # Cleared first, so that stop() is noticed whenever it comes.
            self._has_notes.clear()
            is_ending = self._is_ending.wait(WRITE_SECONDS)
            are_uses_due = is_ending or time.monotonic() >= uses_due_at
            if are_uses_due:
                uses_due_at = time.monotonic() + WRITE_USES_SECONDS
            try:
                self.write(with_uses=are_uses_due)
            except Exception:
                # An error of ours must not end the thread, which nothing would start again.
                logger.exception("Notes of calls are lost")
            finally:
                connections.close_all()
            if self._notes.uses:
                self._has_notes.set()


call_notes = CallNotes()
