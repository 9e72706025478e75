"""queue.push: work for later, collected while the script runs.

What a script pushes is committed with its run and only if the run succeeds, so that a run that is
killed, or tried again, leaves nothing behind. Only keys are reserved at once, so that what a script
is told of them is still true when its run is committed.
"""

import logging
import uuid
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.conf import settings
from uuid_utils.compat import uuid7

from core.database.ids import parse_uuid
from core.database.unavailable import DatabaseUnavailable
from scripts_engine.flows.queue.keys import free_keys, reserve_key
from scripts_engine.flows.queue.room import is_over_quota, waiting_of
from scripts_engine.flows.waiting_calls import growing_pauses
from scripts_engine.host.deadline import remaining
from scripts_engine.models import QueueKey, Script
from scripts_engine.models.queue_entry import key_digest
from scripts_engine.sandbox.contract import HostCallError
from scripts_engine.sandbox.limits import MAX_PUSHED_BYTES, figure_in_words

logger = logging.getLogger(__name__)

MAX_PUSHES = 20
MAX_CHAIN_DEPTH = 20
MAX_DELAY_SECONDS = 30 * 86_400
MAX_ATTEMPTS = 20
MAX_KEY_BYTES = 200
# The longest name of a script in UTF-8.
MAX_SCRIPT_BYTES = 4 * 200


@dataclass(frozen=True, slots=True)
class PushingRun:
    """The run whose script may push."""

    run_id: uuid.UUID
    script_id: uuid.UUID
    chain_depth: int
    """How many runs pushed one another until this one was pushed."""


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


class QueueCapability:
    """The pushes of one run."""

    def __init__(self, organisation_id: uuid.UUID, pushing: PushingRun | None) -> None:
        self._organisation_id = organisation_id
        self._pushing = pushing
        self.pushes: list[Push] = []
        self._reserved: list[str] = []
        # How many of the organisation's runs wait, counted on the first push.
        self._waiting: int | None = None

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
            self._check_room()
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

    def free_keys(self) -> None:
        """Does not raise for database errors: the reservations end anyway."""
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
        scripts = scripts.only("pk", "current_version_id")
        script_id = parse_uuid(text)
        found = list(scripts.filter(pk=script_id)) if script_id else []
        if not found and text and "\0" not in text:
            found = list(scripts.filter(name=text).order_by()[:2])
        if not found:
            raise HostCallError("there is no script with this id or name")
        if len(found) > 1:
            raise HostCallError("several scripts have this name; use the id of one")
        return found[0]

    def _find_or_reserve(
        self,
        script_id: uuid.UUID,
        key: str,
        run_id: uuid.UUID,
        pushing: PushingRun,
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
                self._check_room()
                if self._reserve(digest, run_id, pushing, deadline):
                    return run_id
            elif holder.reserved_by is None:
                return holder.run_id
            elif self._reserved and holder.reserved_by <= pushing.run_id:
                # Two runs that each have a key and want the other's would wait for each other.
                raise HostCallError("another run in progress pushes with this key; try again")
        raise TimeoutError

    def _reserve(
        self, digest: str, run_id: uuid.UUID, pushing: PushingRun, deadline: float
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

    def _check_room(self) -> None:
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
    try:
        if isinstance(key, bytes) and 0 < len(key) <= MAX_KEY_BYTES:
            return key.decode()
    except UnicodeDecodeError:
        pass
    raise HostCallError(f"key must be text of 1 to {MAX_KEY_BYTES} bytes in UTF-8")


def _checked_attempts(attempts: Any) -> int | None:
    if attempts is None:
        return None
    if type(attempts) not in {int, float} or attempts not in range(1, MAX_ATTEMPTS + 1):
        raise HostCallError(f"attempts must be a whole number from 1 to {MAX_ATTEMPTS}")
    return int(attempts)
