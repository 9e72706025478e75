"""queue.push: work for later, collected while the script runs.

What a script pushes is committed with its run and only if the run succeeds, so that a run that is
killed, or tried again, leaves nothing behind. Only keys are reserved at once, so that what a script
is told of them is still true when its run is committed.
"""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings
from uuid_utils.compat import uuid7

from core.database.ids import parse_uuid
from core.database.unavailable import DatabaseUnavailable
from core.names import MAX_NAME_CHARACTERS
from core.waiting import growing_pauses, in_thread
from jobs.models import QueueKey
from jobs.models.queue import key_digest
from jobs.queue.deduplication import free_keys, reserve_key
from jobs.queue.enqueue import (
    MAX_DELAY_SECONDS,
    MAX_KEY_CHARACTERS,
    QueuedRows,
    QueuedWork,
    queued_rows,
    record_all,
    take_keys,
)
from jobs.queue.queue_limit import is_over_quota, waiting_of
from scripts_engine.host.capabilities import (
    Effect,
    Function,
    RecordedRun,
    register_capability,
    remaining,
)
from scripts_engine.models import Script, Trigger
from scripts_engine.runs.spec import Event
from scripts_engine.sandbox import MAX_PUSHED_BYTES, HostCallError, figure_in_words

logger = logging.getLogger(__name__)

PUSH = "queue.push"
MAX_PUSHES = 20
MAX_CHAIN_DEPTH = 20
MAX_ATTEMPTS = 20
# The longest name of a script in UTF-8.
MAX_SCRIPT_BYTES = 4 * MAX_NAME_CHARACTERS


@dataclass(frozen=True, slots=True)
class Push:
    """Work that a script wants to have in the queue."""

    run_id: uuid.UUID
    """Of the run that this becomes; the script knows it already."""
    script_id: uuid.UUID
    version_id: uuid.UUID | None
    payload: bytes
    delay_seconds: float
    key: str
    """Empty if there is none."""
    max_attempts: int | None
    """``None`` leaves it to the queue."""


class PushedRuns(NamedTuple):
    """The rows of what a script has pushed, stored with its run."""

    rows: Sequence[QueuedRows]

    @property
    def size_bytes(self) -> int:
        return sum(each.run["payload_bytes"] for each in self.rows)

    def store(self) -> None:
        """In the transaction that records the run. Raises ``KeyTakenError``."""
        take_keys(self.rows)
        record_all(self.rows)


class QueueCapability:
    """The pushes of one run."""

    def __init__(self, organisation_id: uuid.UUID, recorded: RecordedRun | None) -> None:
        self._organisation_id = organisation_id
        self._pushing = recorded
        self.pushes: list[Push] = []
        self._reserved: list[str] = []
        # How many of the organisation's runs wait, counted on the first push.
        self._waiting: int | None = None

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        return {PUSH: self.push}

    def effect(self, secrets: frozenset[bytes]) -> Effect | None:
        if self._pushing is None or not self.pushes:
            return None
        make = partial(_pushed_runs, self._organisation_id, self._pushing, self.pushes, secrets)
        # To look for secrets in all of it may take tenths of a second.
        return in_thread(make) if secrets else make()

    def push(
        self, script: Any, payload: Any, delay: Any, key: Any, attempts: Any, *, deadline: float
    ) -> list[bytes | bool]:
        """Collects the work, and returns the id of its run and whether the run is new.

        A key finds the run that was pushed for the script with it before, and nothing is collected.
        Waits until the deadline while another run in progress pushes with the key. Raises
        ``HostCallError`` with a message for the script.
        """
        if self._pushing is None:
            raise HostCallError("not available here")
        if self._pushing.chain_depth >= MAX_CHAIN_DEPTH:
            raise HostCallError(f"more than {MAX_CHAIN_DEPTH} runs that pushed one another")
        payload = _checked_payload(payload)
        delay_seconds = _checked_delay(delay)
        key = _checked_key(key)
        max_attempts = _checked_attempts(attempts)
        target = self._find_script(script)
        run_id = uuid7()
        if key:
            holder = self._find_or_reserve(target.pk, key, run_id, self._pushing, deadline)
            if holder != run_id:
                return [str(holder).encode(), False]
        else:
            self._check_limits()
        push = Push(
            run_id=run_id,
            script_id=target.pk,
            version_id=target.current_version_id,
            payload=payload,
            delay_seconds=delay_seconds,
            key=key,
            max_attempts=max_attempts,
        )
        self.pushes.append(push)
        return [str(push.run_id).encode(), True]

    def abandon(self) -> None:
        """Frees the keys. Does not raise for database errors: the reservations end anyway."""
        if not self._reserved or self._pushing is None:
            return
        try:
            free_keys(self._pushing.run_id, self._reserved)
        except DatabaseUnavailable as error:
            logger.warning("Keys not freed until they expire: %s", " ".join(str(error).split()))

    def _find_script(self, given: Any) -> Script:
        """The organisation's script with this id or name, enabled or not."""
        if not isinstance(given, bytes):
            raise HostCallError("the script must be a string")
        text = given.decode("utf-8", "replace") if len(given) <= MAX_SCRIPT_BYTES else ""
        scripts = Script.objects.existing().filter(organisation=self._organisation_id)
        scripts = scripts.only("pk", "current_version_id", "is_library")
        script_id = parse_uuid(text)
        found = list(scripts.filter(pk=script_id)) if script_id else []
        if not found and text and "\0" not in text:
            found = list(scripts.filter(name=text))
        if not found:
            raise HostCallError("there is no script with this id or name")
        if found[0].is_library:
            raise HostCallError("this is a library, which does not run by itself")
        return found[0]

    def _find_or_reserve(
        self,
        script_id: uuid.UUID,
        key: str,
        run_id: uuid.UUID,
        pushing: RecordedRun,
        deadline: float,
    ) -> uuid.UUID:
        """Returns the run that was pushed with the key, or reserves the key for this one."""
        for push in self.pushes:
            if (push.script_id, push.key) == (script_id, key):
                return push.run_id
        digest = key_digest(script_id, key)
        for _ in chain((None,), growing_pauses(remaining(deadline))):
            holder = QueueKey.objects.find_holder(digest)
            if holder is None:
                self._check_limits()
                if self._reserve(digest, run_id, pushing, deadline):
                    return run_id
            elif holder.reserved_by is None:
                return holder.run_id
            elif self._reserved and holder.reserved_by <= pushing.run_id:
                # Two runs that each have a key and want the other's would wait for each other.
                raise HostCallError("another run in progress pushes with this key; try again")
        raise TimeoutError

    def _reserve(
        self, digest: str, run_id: uuid.UUID, pushing: RecordedRun, deadline: float
    ) -> bool:
        # Before the statement: its answer may get lost.
        self._reserved.append(digest)
        is_reserved = reserve_key(
            self._organisation_id,
            digest,
            run_id,
            reserved_by=pushing.run_id,
            run_seconds=remaining(deadline),
        )
        if not is_reserved:
            self._reserved.remove(digest)
        return is_reserved

    def _check_limits(self) -> None:
        if len(self.pushes) >= MAX_PUSHES:
            raise HostCallError(f"more than {MAX_PUSHES} pushes in a run")
        limit = settings.QUEUE_MAX_WAITING
        if self._waiting is None:
            waiting = waiting_of(self._organisation_id)
            if is_over_quota(self._organisation_id, waiting):
                raise HostCallError("the queue is full: what waits uses up the quota of bytes")
            self._waiting = waiting
        if self._waiting + len(self.pushes) >= limit:
            raise HostCallError(f"the queue is full: {limit:,} runs of the organisation wait")


def _pushed_runs(
    organisation_id: uuid.UUID,
    pushing: RecordedRun,
    pushes: Sequence[Push],
    secrets: frozenset[bytes],
) -> PushedRuns:
    rows = []
    for push in pushes:
        work = QueuedWork(
            organisation_id=organisation_id,
            script_id=push.script_id,
            version_id=push.version_id,
            event=Event("POST", "", (), push.payload, ""),
            trigger=Trigger.QUEUE,
            max_attempts=push.max_attempts,
            delay_seconds=push.delay_seconds,
            pushed_by_id=pushing.run_id,
            chain_depth=pushing.chain_depth + 1,
            is_of_alert=pushing.is_of_alert,
            hidden_secrets=secrets,
        )
        rows.append(queued_rows(work, push.run_id)._replace(key=push.key))
    return PushedRuns(rows)


def register() -> None:
    register_capability(QueueCapability, {PUSH: Function(5, MAX_SCRIPT_BYTES, _describe)})


def _describe(arguments: list[Any], pushed: Any) -> str:
    return f"run {pushed[0].decode()}{'' if pushed[1] else ', queued before'}"


def _checked_payload(payload: Any) -> bytes:
    if not isinstance(payload, bytes):
        raise HostCallError("the payload must be a string")
    if len(payload) > MAX_PUSHED_BYTES:
        limit = figure_in_words(MAX_PUSHED_BYTES)
        raise HostCallError(f"a payload may have {limit}; this one has {len(payload):,} bytes")
    return payload


def _checked_delay(delay: Any) -> float:
    if delay is None:
        return 0.0
    # NaN fails the comparison too.
    if type(delay) not in {int, float} or not 0 <= delay <= MAX_DELAY_SECONDS:
        raise HostCallError(f"delay must be from 0 to {MAX_DELAY_SECONDS:,} seconds (30 days)")
    return float(delay)


def _checked_key(key: Any) -> str:
    if key is None:
        return ""
    # A character has at most 4 bytes.
    if isinstance(key, bytes) and len(key) <= 4 * MAX_KEY_CHARACTERS:
        try:
            text = key.decode()
        except UnicodeDecodeError:
            text = ""
        if 1 <= len(text) <= MAX_KEY_CHARACTERS:
            return text
    raise HostCallError(f"key must be text in UTF-8 of 1 to {MAX_KEY_CHARACTERS} characters")


def _checked_attempts(attempts: Any) -> int | None:
    if attempts is None:
        return None
    if type(attempts) not in {int, float} or attempts not in range(1, MAX_ATTEMPTS + 1):
        raise HostCallError(f"attempts must be a whole number from 1 to {MAX_ATTEMPTS}")
    return int(attempts)
