"""The canonical form of e-mail addresses, which identifies accounts."""

import unicodedata

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MAX_LENGTH = 254


def canonical_email(typed: str) -> str:
    """NFKC, stripped and casefolded.

    Not for delivery: folding may change a domain (``ß`` to ``ss``). Databases' case-insensitive
    comparisons are avoided, because ``upper()`` turns ``ı`` into ``I``: another person's address.
    """
    folded = unicodedata.normalize("NFKC", typed).strip().casefold()
    # Folding may undo the normalisation. Databases refuse NUL.
    return unicodedata.normalize("NFKC", folded).replace("\0", "\ufffd")


def validate_typed_email(typed: str) -> None:
    """Raises ``ValidationError`` for an invalid address.

    The part before the @ must be ASCII, because a login name must not contain look-alike letters.
    """
    normal = unicodedata.normalize("NFKC", typed).strip()
    local_part = normal.rpartition("@")[0]
    if len(normal) > MAX_LENGTH or not local_part.isascii() or not normal.isprintable():
        raise ValidationError("Enter a valid e-mail address.", code="invalid")
    validate_email(normal)
