"""Challenges that a PIN answers, their codes, and the tries of each device."""

import uuid
from collections.abc import Collection, Iterable
from datetime import datetime

from django.conf import settings
from django.db import connection, models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.addresses import MAX_LENGTH
from accounts.models.user import User

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


def _latest_expiry(now: datetime) -> datetime:
    """The latest expiry that a valid code can have.

    A code that expires later was made before the clock was set back, so its age is unknown. The
    limit is twice the lifetime, because the clocks of nodes differ a little.
    """
    return now + 2 * settings.PIN_LIFETIME


class PinChallengeQuerySet(models.QuerySet["PinChallenge"]):
    def open_of(self, email: str) -> "PinChallengeQuerySet":
        """The challenges of the canonical address that have not ended."""
        return self.filter(email=email, ended_at__isnull=True)

    def open_for(self, email: str, device: uuid.UUID | None = None) -> "PinChallenge | None":
        """The newest open challenge of the device that asked, or of requests that name none."""
        return self.open_of(email).filter(device=device).order_by("-pk").first()

    def with_live_codes(self, email: str, device: uuid.UUID) -> list["PinChallenge"]:
        """The open challenges that the device asked for, and those that no named device did."""
        now = timezone.now()
        return list(
            self.open_of(email)
            .filter(models.Q(device=None) | models.Q(device=device))
            .filter(expires_at__gt=now, expires_at__lte=_latest_expiry(now))
        )

    def redeem(self, challenge: "PinChallenge", device: uuid.UUID) -> bool:
        """Ends the challenge after a correct PIN; true for only one of concurrent attempts.

        Ends with it every other whose codes the device could try, since others may try them too.
        Codes that other devices asked for by name are for these devices alone, and stay.
        """
        now = timezone.now()
        if self.filter(pk=challenge.pk, ended_at__isnull=True).update(ended_at=now) != 1:
            return False
        others = [each.pk for each in self.with_live_codes(challenge.email, device)]
        self.filter(pk__in=others).update(ended_at=now)
        return True


class PinChallenge(models.Model):
    """One PIN login: up to ``PIN_LIVE_CODES`` live codes, for which each device has its tries.

    A device that names itself when it asks for a code has challenges of its own: nobody else can
    try these codes, use their tries up, or displace them by asking for more. Unknown addresses
    have challenges too, with codes that are never sent, so that guessing takes the same time and
    fails in the same way.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.CharField("e-mail", max_length=MAX_LENGTH)
    user = models.ForeignKey(
        User, null=True, on_delete=models.CASCADE, related_name="pin_challenges"
    )
    device = models.UUIDField(
        null=True, help_text="The device that asked for the codes, if it named itself."
    )
    opened_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(help_text="When its newest code expires.")
    ended_at = models.DateTimeField(null=True)

    objects = PinChallengeQuerySet.as_manager()

    class Meta:
        verbose_name = "PIN request"
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["email"],
                condition=models.Q(ended_at__isnull=True),
                name="open_challenges_of_address",
            )
        ]

    def __str__(self) -> str:
        return f"PIN request of {self.email}"

    @property
    def tries(self) -> int:
        """The tries of all devices."""
        return sum(each.tries for each in self.tries_of_devices.all())

    @property
    def is_spent(self) -> bool:
        """Whether a device has no try left or no code is live: the next code needs another one."""
        now = timezone.now()
        return not now < self.expires_at <= _latest_expiry(now) or any(
            each.tries >= settings.PIN_TRIES_PER_DEVICE for each in self.tries_of_devices.all()
        )


class PinCodeQuerySet(models.QuerySet["PinCode"]):
    def newest_since(
        self, email: str, device: uuid.UUID | None, first_id: uuid.UUID
    ) -> "PinCode | None":
        """The newest code of the address and device whose id is at least ``first_id``."""
        return (
            self.select_related("challenge__user")
            .filter(challenge__email=email, challenge__device=device, pk__gte=first_id)
            .order_by("-pk")
            .first()
        )

    def find_challenge(self, challenges: Collection[PinChallenge], pin: str) -> PinChallenge | None:
        """The challenge that the PIN is a live code of; compares as many as can be live.

        Live are the newest ``PIN_LIVE_CODES`` that a named device asked for, and as many others. A
        missing challenge costs the same statement.
        """
        now = timezone.now()
        by_id = {challenge.pk: challenge for challenge in challenges}
        codes = self.filter(
            challenge__in=[*by_id] or [uuid7()],
            expires_at__gt=now,
            expires_at__lte=_latest_expiry(now),
        )
        newest_first = list(codes.order_by("-pk"))
        of_named = [code for code in newest_first if by_id[code.challenge_id].device is not None]
        of_others = [code for code in newest_first if by_id[code.challenge_id].device is None]
        live = [*of_named[: settings.PIN_LIVE_CODES], *of_others[: settings.PIN_LIVE_CODES]]
        # No match ends the comparing early.
        matching = [by_id[code.challenge_id] for code in live if code.is_made_of(pin)]
        for _ in range(2 * settings.PIN_LIVE_CODES - len(live)):
            credentials.matches(credentials.pin_material(uuid7(), pin), None)
        return matching[0] if matching else None


class PinCode(models.Model):
    """The digest of one code, bound to its challenge."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    challenge = models.ForeignKey(PinChallenge, on_delete=models.CASCADE, related_name="codes")
    digest = models.CharField(max_length=64)
    pepper_version = models.PositiveIntegerField()
    expires_at = models.DateTimeField()

    objects = PinCodeQuerySet.as_manager()

    class Meta:
        verbose_name = "PIN code"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"Code of {self.challenge}"

    def is_made_of(self, pin: str) -> bool:
        """Whether the PIN is this code, whether or not it is still live."""
        material = credentials.pin_material(self.challenge_id, pin)
        return credentials.matches(material, credentials.Digest(self.digest, self.pepper_version))


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
