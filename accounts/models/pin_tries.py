import uuid
from collections.abc import Iterable

from django.conf import settings
from django.db import connection, models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models.pin_challenge import PinChallenge

# One statement, which is exact under concurrent guesses. Rows are locked in the order of their
# challenges, so that guesses of one device do not wait for each other in a circle.
_CLAIM = """
    INSERT INTO {tries} (challenge_id, device, tries)
    SELECT id, %s, 1 FROM {challenges}
    WHERE id IN ({ids}) AND ended_at IS NULL AND expires_at > %s
    ORDER BY id
    ON CONFLICT (challenge_id, device) DO UPDATE SET tries = {tries}.tries + 1
        WHERE {tries}.tries < %s
    RETURNING challenge_id
"""


class PinTriesQuerySet(models.QuerySet["PinTries"]):
    def claim(self, challenges: Iterable[PinChallenge], device: uuid.UUID) -> list[PinChallenge]:
        """Takes a try of the device in each challenge before anything is compared.

        Returns the challenges where one was left. No challenge costs the same statement.
        """
        by_id = {challenge.pk: challenge for challenge in challenges}
        ids = [*by_id] or [uuid7()]
        statement = _CLAIM.format(
            tries=connection.ops.quote_name(PinTries._meta.db_table),
            challenges=connection.ops.quote_name(PinChallenge._meta.db_table),
            ids=", ".join(["%s"] * len(ids)),
        )
        adapt = PinChallenge._meta.pk.get_db_prep_value
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        parameters = [adapt(each, connection) for each in (device, *ids)]
        with connection.cursor() as cursor:
            cursor.execute(statement, [*parameters, now, settings.PIN_TRIES_PER_DEVICE])
            return [by_id[uuid.UUID(str(each))] for (each,) in cursor.fetchall()]


class PinTries(models.Model):
    """How often a device has tried a code of a challenge.

    Devices do not share tries, so that a stranger cannot use up those of the owner. The buckets of
    ``PinFailures`` bound the number of rows.
    """

    challenge = models.ForeignKey(
        PinChallenge, on_delete=models.CASCADE, related_name="tries_of_devices", db_index=False
    )
    device = models.UUIDField()
    tries = models.PositiveSmallIntegerField()

    objects = PinTriesQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "PIN tries"
        constraints = [
            models.UniqueConstraint(
                fields=["challenge", "device"], name="one_count_per_challenge_and_device"
            )
        ]

    def __str__(self) -> str:
        return f"Tries of {self.device}"
