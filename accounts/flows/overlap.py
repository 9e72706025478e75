from datetime import timedelta

from django.core.exceptions import ValidationError

LONGEST_OVERLAP = timedelta(days=7)


def checked_overlap(seconds: int) -> timedelta:
    """How long the old secret stays good after a rotation: 0 to 7 days.

    Raises ``ValidationError`` under ``overlap_seconds``.
    """
    if not 0 <= seconds <= LONGEST_OVERLAP.total_seconds():
        raise ValidationError(
            {
                "overlap_seconds": ValidationError(
                    f"The overlap is 0 to {int(LONGEST_OVERLAP.total_seconds())} seconds.",
                    code="invalid",
                )
            }
        )
    return timedelta(seconds=seconds)
