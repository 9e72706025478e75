"""Runs each delivery once, and repeats the reply of its run to the duplicates.

One conditional INSERT decides which of equal deliveries runs. It stores the id of the run that is
about to start, and the recorded run is what says that the delivery has ended, and how. So there is
no second write after a run that a crash could prevent: either the run is committed, and duplicates
get its reply, or it is not, and the delivery is lost once its lease has ended.
"""

import hashlib
import logging
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain
from typing import NamedTuple

from django.db import connection
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database.batches import BATCH
from core.database.compiled_query import column_value
from core.database.unavailable import DatabaseUnavailable
from core.http.bulkhead import BulkheadFullError
from core.waiting import growing_pauses
from hooks.metrics import DUPLICATES
from hooks.models import Idempotency, IdempotencyKey
from hooks.models.idempotency_key import IdempotencyKeyQuerySet
from hooks.problems import CallProblem
from jobs.concurrent_runs import waiting_calls
from jobs.models.queue import MAX_LEASE
from scripts_engine.models import Run
from scripts_engine.runs.problems import NotRunError, busy

logger = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
RETRY_AFTER_SECONDS = 5
# From here on the delivery is not done, and the next one runs.
_FIRST_FAILED_STATUS = 500

# A key is free if its run failed, if its window is over, or if there is no run and its lease has
# ended. The statement locks the row before it reads it, so one of equal deliveries takes it over.
_CLAIM = """
    INSERT INTO {keys} (digest, hook_id, run_id, runs, lease_ends_at, expires_at, duplicates,
        is_reply_altered, ended_with, accepted_status, first_wait_ends_at, second_wait_ends_at)
    VALUES (%(digest)s, %(hook)s, %(run)s, 1, %(lease_ends_at)s, %(expires_at)s, 0,
        %(not_altered)s, NULL, %(accepted_status)s, %(now)s, %(now)s)
    ON CONFLICT (digest) DO UPDATE SET
        run_id = excluded.run_id,
        runs = CASE WHEN {keys}.expires_at <= %(now)s THEN 1 ELSE {keys}.runs + 1 END,
        lease_ends_at = excluded.lease_ends_at,
        expires_at = excluded.expires_at,
        duplicates = 0,
        is_reply_altered = excluded.is_reply_altered,
        ended_with = NULL,
        accepted_status = excluded.accepted_status,
        first_wait_ends_at = excluded.first_wait_ends_at,
        second_wait_ends_at = excluded.second_wait_ends_at
    WHERE CASE
        WHEN {ended_with} IS NULL
        THEN {keys}.lease_ends_at <= %(now)s OR {keys}.lease_ends_at > %(latest)s
        ELSE {ended_with} >= %(failed)s OR {keys}.expires_at <= %(now)s END
    RETURNING runs
"""
# An accepted delivery is done as soon as its run is queued: the queue takes care of its failures.
_ENDED_WITH = """COALESCE({keys}.ended_with,
    (SELECT COALESCE({keys}.accepted_status, response_status)
    FROM {runs} WHERE {runs}.id = {keys}.run_id))"""


class DuplicateInProgressError(NotRunError):
    """The first delivery is still running. Nothing ran; its reply may be there later."""

    why = busy(
        CallProblem.DUPLICATE_IN_PROGRESS,
        "The same delivery is being processed. Nothing ran; try again for its reply.",
    )

    retry_after_seconds = RETRY_AFTER_SECONDS


class RepeatedReply(NamedTuple):
    """The recorded reply of the run that the first delivery started."""

    run_id: uuid.UUID
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    was_accepted: bool = False
    """The first delivery was queued, and this is the status that its sender got."""


class FirstDelivery(NamedTuple):
    """A delivery that must run now, as the run with that id."""

    digest: str
    run_id: uuid.UUID

    def note_altered_reply(self) -> None:
        """Keeps duplicates from getting what recording makes of the reply.

        Call it before the run is recorded.
        """
        self._key().update(is_reply_altered=True)

    def free(self) -> None:
        """Lets the next delivery run, because this one did not, or its run is not recorded.

        Does not raise for database errors: the lease ends anyway.
        """
        try:
            self._key().update(lease_ends_at=timezone.now())
        except DatabaseUnavailable as error:
            logger.warning("Delivery not freed until its lease ends: %s", error)

    def _key(self) -> IdempotencyKeyQuerySet:
        return IdempotencyKey.objects.filter(digest=self.digest, run_id=self.run_id)


class _State(NamedTuple):
    """A key, and the response status of its run: 0 while there is no run."""

    run_id: uuid.UUID
    ended_with: int
    lease_ends_at: datetime
    is_reply_altered: bool
    accepted_status: int | None

    @property
    def is_running(self) -> bool:
        return not self.ended_with and self.lease_ends_at > timezone.now()

    @property
    def is_done(self) -> bool:
        return 0 < self.ended_with < _FIRST_FAILED_STATUS


def delivery_digest(
    hook_id: uuid.UUID,
    idempotency: str,
    *,
    event_id: str | None,
    content: Sequence[str | bytes],
) -> str | None:
    """Returns the key that equal deliveries of the hook share.

    ``content`` is that of ``Event``. ``None`` if the hook does not ask for it, or asks for an event
    id that the call does not have.
    """
    match idempotency:
        case Idempotency.EVENT_ID if event_id:
            common = event_id.encode("utf-8", "surrogatepass")
        case Idempotency.BODY_HASH if content:
            common = b"".join(_framed(part) for part in content)
        case _:
            return None
    prefix = f"{hook_id} {idempotency} ".encode()
    return hashlib.sha256(prefix + common).hexdigest()


def _framed(part: str | bytes) -> bytes:
    """The part after its length, so that no byte counts as one of its neighbour."""
    encoded = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8) + encoded


def claim_delivery(
    hook_id: uuid.UUID,
    digest: str,
    *,
    organisation_id: uuid.UUID,
    window_seconds: int,
    lease_seconds: float,
    accepted_status: int | None = None,
) -> FirstDelivery | RepeatedReply:
    """Decides whether the delivery runs, or returns the reply of the one that did.

    Waits for a run in progress, at most ``WAIT_SECONDS``. ``lease_seconds`` is the longest time
    from this call until the run is recorded. ``accepted_status`` is the status of the reply if the
    run will be queued. Raises ``DuplicateInProgressError``.
    """
    delivery = _Delivery(hook_id, digest, window_seconds, lease_seconds, accepted_status)
    outcome = delivery.first_or_repeated()
    if outcome is None:
        try:
            with waiting_calls().place(str(organisation_id), waits=False):
                outcome = delivery.wait()
        except BulkheadFullError:
            outcome = None
    if outcome is None:
        DUPLICATES.labels("in-progress").inc()
        raise DuplicateInProgressError
    return outcome


class _Delivery(NamedTuple):
    hook_id: uuid.UUID
    digest: str
    window_seconds: int
    lease_seconds: float
    accepted_status: int | None

    def first_or_repeated(self) -> FirstDelivery | RepeatedReply | None:
        """``None`` if an equal delivery is running."""
        first = self._claim()
        if first is not None:
            return first
        state = self._state()
        if state is None or not state.is_done:
            return None
        DUPLICATES.labels("repeated").inc()
        return self._repeated(state)

    def wait(self) -> FirstDelivery | RepeatedReply | None:
        """Waits for the reply; runs itself if the first fails. ``None`` if it takes too long.

        At most two deliveries wait for a run, on whatever nodes they are.
        """
        place_of: uuid.UUID | None = None
        ends_at = timezone.now() + timedelta(seconds=WAIT_SECONDS)
        for _ in chain((None,), growing_pauses(WAIT_SECONDS)):
            state = self._state()
            if state is not None and state.is_done:
                DUPLICATES.labels("waited").inc()
                return self._repeated(state)
            if state is None or not state.is_running:
                first = self._claim()
                if first is not None:
                    return first
            elif state.run_id != place_of:
                if not self._take_place(state.run_id, ends_at):
                    return None
                place_of = state.run_id
        return None

    def _claim(self) -> FirstDelivery | None:
        run_id, now = uuid7(), timezone.now()
        moment = partial(column_value, IdempotencyKey, "expires_at")
        values = {
            "digest": self.digest,
            "hook": column_value(IdempotencyKey, "hook", self.hook_id),
            "run": column_value(IdempotencyKey, "run_id", run_id),
            "lease_ends_at": moment(now + timedelta(seconds=self.lease_seconds)),
            "expires_at": moment(now + timedelta(seconds=self.window_seconds)),
            "now": moment(now),
            "latest": moment(now + MAX_LEASE),
            "failed": _FIRST_FAILED_STATUS,
            "not_altered": False,
            "accepted_status": self.accepted_status,
        }
        with connection.cursor() as cursor:
            cursor.execute(_claim_statement(), values)
            row = cursor.fetchone()
        if row is None:
            return None
        if row[0] > 1:
            DUPLICATES.labels("freed").inc()
        return FirstDelivery(self.digest, run_id)

    def _state(self) -> _State | None:
        ended = Coalesce(OuterRef("accepted_status"), "response_status")
        response_status = Run.objects.filter(pk=OuterRef("run_id")).values_list(ended)
        row = (
            self._keys()
            .annotate(ended=Coalesce(F("ended_with"), Subquery(response_status), 0))
            .values_list("run_id", "ended", "lease_ends_at", "is_reply_altered", "accepted_status")
            .first()
        )
        return None if row is None else _State(*row)

    def _repeated(self, state: _State) -> RepeatedReply:
        """The reply as recorded, or only its status where that is not what the sender got."""
        self._keys().filter(run_id=state.run_id).update(duplicates=F("duplicates") + 1)
        if state.accepted_status is not None:
            return RepeatedReply(state.run_id, state.ended_with, (), b"", was_accepted=True)
        run = (
            Run.objects.filter(pk=state.run_id, hook_id=self.hook_id)
            .only("response_status", "response_headers", "response_body", "response_bytes")
            .first()
        )
        if run is None or state.is_reply_altered or len(run.response_body) != run.response_bytes:
            return RepeatedReply(state.run_id, state.ended_with, (), b"")
        headers = [(name, value) for name, value in run.response_headers]
        return RepeatedReply(run.pk, run.response_status, headers, bytes(run.response_body))

    def _take_place(self, run_id: uuid.UUID, ends_at: datetime) -> bool:
        """Takes one of the run's two places for duplicates that wait, until that time."""
        now = timezone.now()
        is_first_free = Q(first_wait_ends_at__lte=now)
        free = self._keys().filter(is_first_free | Q(second_wait_ends_at__lte=now), run_id=run_id)
        taken = free.update(
            first_wait_ends_at=Case(
                When(is_first_free, then=Value(ends_at)), default=F("first_wait_ends_at")
            ),
            second_wait_ends_at=Case(
                When(is_first_free, then=F("second_wait_ends_at")), default=Value(ends_at)
            ),
        )
        return taken == 1

    def _keys(self) -> IdempotencyKeyQuerySet:
        return IdempotencyKey.objects.of_hook(self.hook_id).filter(digest=self.digest)


def keep_outcomes(organisation_id: uuid.UUID, end: uuid.UUID) -> None:
    """Notes how the organisation's runs before ``end`` ended, before they are deleted.

    Without it, the next delivery would run again.
    """
    run = Run.objects.filter(pk=OuterRef("run_id"))
    unknown = IdempotencyKey.objects.filter(
        Exists(run), hook__script__organisation=organisation_id, run_id__lt=end, ended_with=None
    ).order_by("run_id")
    while batch := list(unknown.values_list("pk", flat=True)[:BATCH]):
        IdempotencyKey.objects.filter(pk__in=batch).update(
            ended_with=Coalesce(F("accepted_status"), Subquery(run.values("response_status")))
        )


@cache
def _claim_statement() -> str:
    quote = connection.ops.quote_name
    names = {
        "keys": quote(IdempotencyKey._meta.db_table),
        "runs": quote(Run._meta.db_table),
    }
    return _CLAIM.format(ended_with=_ENDED_WITH.format(**names), **names)
