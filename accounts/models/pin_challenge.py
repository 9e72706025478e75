import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.email_address import MAX_LENGTH
from accounts.models.user import User


def _latest_expiry(now: datetime) -> datetime:
    """The latest expiry that a valid code can have.

    A code that expires later was made before the clock was set back, so its age is unknown. The
    limit is twice the lifetime, because the clocks of nodes differ a little.
    """
    return now + 2 * settings.PIN_LIFETIME


class PinChallengeQuerySet(models.QuerySet["PinChallenge"]):
    def open_for(self, email: str) -> "PinChallenge | None":
        """The one challenge of the canonical address that has not ended."""
        return self.filter(email=email, ended_at__isnull=True).first()

    def claim_try(self, challenge: "PinChallenge | None") -> bool:
        """Takes one of the challenge's tries before anything is compared; false if none is left.

        One conditional UPDATE is exact under concurrent guesses. A missing challenge costs the
        same statement.
        """
        claimed = self.filter(
            pk=uuid7() if challenge is None else challenge.pk,
            ended_at__isnull=True,
            expires_at__gt=timezone.now(),
            tries__lt=settings.PIN_TRIES_PER_CHALLENGE,
        ).update(tries=F("tries") + 1)
        return claimed == 1

    def redeem(self, challenge: "PinChallenge") -> bool:
        """Ends the challenge after a correct PIN; true for only one of concurrent attempts."""
        now = timezone.now()
        return self.filter(pk=challenge.pk, ended_at__isnull=True).update(ended_at=now) == 1


class PinChallenge(models.Model):
    """One PIN login: up to ``PIN_LIVE_CODES`` live codes, which share one counter of tries.

    Unknown addresses have challenges too, with codes that are never sent, so that guessing takes
    the same time and fails in the same way.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.CharField("e-mail", max_length=MAX_LENGTH)
    user = models.ForeignKey(
        User, null=True, on_delete=models.CASCADE, related_name="pin_challenges"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    opened_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(help_text="When its newest code expires.")
    ended_at = models.DateTimeField(null=True)

    objects = PinChallengeQuerySet.as_manager()

    class Meta:
        verbose_name = "PIN request"
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["email"],
                condition=models.Q(ended_at__isnull=True),
                name="one_open_challenge_per_address",
            )
        ]

    def __str__(self) -> str:
        return f"PIN request of {self.email}"

    @property
    def is_spent(self) -> bool:
        """Whether no try is left or no code is live."""
        now = timezone.now()
        return (
            self.tries >= settings.PIN_TRIES_PER_CHALLENGE
            or not now < self.expires_at <= _latest_expiry(now)
        )

    def has_code(self, pin: str) -> bool:
        """Whether the PIN is one of the live codes; always compares as many as can be live."""
        now = timezone.now()
        codes = self.codes.filter(expires_at__gt=now, expires_at__lte=_latest_expiry(now))
        live = list(codes.order_by("-id")[: settings.PIN_LIVE_CODES])
        stored = [credentials.Digest(code.digest, code.pepper_version) for code in live]
        padding: list[credentials.Digest | None] = [None] * (settings.PIN_LIVE_CODES - len(stored))
        material = credentials.pin_material(self.pk, pin)
        # A list, so that a match does not end the comparing early.
        compared = [credentials.matches(material, digest) for digest in [*stored, *padding]]
        return any(compared)


class PinCodeQuerySet(models.QuerySet["PinCode"]):
    def newest_since(self, email: str, first_id: uuid.UUID) -> "PinCode | None":
        """The newest code of the canonical address whose id is at least ``first_id``."""
        return (
            self.select_related("challenge__user")
            .filter(challenge__email=email, pk__gte=first_id)
            .order_by("-pk")
            .first()
        )


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
