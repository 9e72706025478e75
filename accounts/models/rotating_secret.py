from collections import Counter
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Count, F, QuerySet
from django.utils import timezone

from accounts import credentials

LONGEST_OVERLAP = timedelta(days=7)


class RotatingSecret(models.Model):
    """Abstract: a row whose secret can be rotated; only digests of it are kept.

    After a rotation the previous secret stays valid for an overlap, so that programs can change
    over without an outage.
    """

    SECRET_KIND: ClassVar[credentials.SecretKind]

    digest = models.CharField(max_length=64, editable=False)
    pepper_version = models.PositiveIntegerField(editable=False)
    previous_digest = models.CharField(max_length=64, blank=True, editable=False)
    previous_pepper_version = models.PositiveIntegerField(null=True, editable=False)
    previous_valid_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When the previous secret expires.",
    )

    class Meta:
        abstract = True

    def renew_secret(self) -> str:
        """Replaces the digest by that of a new secret, without saving; returns the secret."""
        secret = credentials.generate_secret(self.SECRET_KIND)
        digest = credentials.digest(secret)
        self.digest, self.pepper_version = digest.value, digest.pepper_version
        return secret

    def rotate_secret(self, overlap: timedelta) -> str:
        """Saves a new secret and returns it; the current one stays valid for the overlap.

        Call with the row locked: the later of two concurrent rotations must see the secret of
        the earlier one.
        """
        self.previous_digest, self.previous_pepper_version = self.digest, self.pepper_version
        self.previous_valid_until = timezone.now() + overlap
        secret = self.renew_secret()
        self.save(
            update_fields=[
                "digest",
                "pepper_version",
                "previous_digest",
                "previous_pepper_version",
                "previous_valid_until",
            ]
        )
        return secret

    def has_secret(self, secret: str) -> bool:
        """Whether the secret is the current one, or the previous one during its overlap.

        Always compares with both, each in constant time.
        """
        current = credentials.matches(secret, credentials.Digest(self.digest, self.pepper_version))
        previous = credentials.matches(secret, self._previous)
        return current or previous

    @property
    def secret_name(self) -> str:
        """Tells the current secret from all others, without revealing it."""
        return f"{self._meta.label_lower}:{self.pk}:{self.digest}"

    @property
    def previous_good_until(self) -> datetime | None:
        """The end of the overlap; ``None`` when it has passed or there was no rotation."""
        until = self.previous_valid_until
        return until if until is not None and until > timezone.now() else None

    @property
    def _previous(self) -> credentials.Digest | None:
        if self.previous_good_until is None or self.previous_pepper_version is None:
            return None
        return credentials.Digest(self.previous_digest, self.previous_pepper_version)


def validated_overlap(seconds: int) -> timedelta:
    """The overlap of a rotation, 0 to 7 days.

    Raises ``ValidationError`` under ``overlap_seconds``.
    """
    longest = int(LONGEST_OVERLAP.total_seconds())
    if not 0 <= seconds <= longest:
        message = f"The overlap is 0 to {longest} seconds."
        raise ValidationError({"overlap_seconds": ValidationError(message, code="invalid")})
    return timedelta(seconds=seconds)


def count_by_pepper(rows: QuerySet[Any]) -> Counter[int]:
    """Counts rows by version; during the overlap of a rotation also by the previous version."""
    in_overlap = rows.filter(previous_valid_until__gt=timezone.now()).exclude(
        previous_pepper_version=F("pepper_version")
    )
    return count_by(rows, "pepper_version") + count_by(in_overlap, "previous_pepper_version")


def count_by(rows: QuerySet[Any], column: str) -> Counter[int]:
    """Counts rows by the value of a column."""
    return Counter(dict(rows.order_by().values_list(column).annotate(Count("pk"))))
