"""E-mail addresses in their canonical form, by which accounts are told apart."""

import unicodedata

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MAX_LENGTH = 254


def canonical_email(typed: str) -> str:
    """NFKC, stripped and casefolded.

    Not the form to deliver to: folding may change a domain (``ß`` to ``ss``). Databases' own
    ways to ignore case are avoided, because ``upper()`` makes ``ı`` an ``I`` and with it another
    person's address.
    """
    folded = unicodedata.normalize("NFKC", typed).strip().casefold()
    # Folding may bring up what normalising had put away; and NUL is in nobody's address.
    return unicodedata.normalize("NFKC", folded).replace("\0", "\ufffd")


def validate_typed_email(typed: str) -> None:
    """Raises ``ValidationError`` unless mail could be delivered to it.

    The part before the @ must be ASCII: letters that only look alike or fold to others have no
    place in a login name.
    """
    normal = unicodedata.normalize("NFKC", typed).strip()
    local_part = normal.rpartition("@")[0]
    if len(normal) > MAX_LENGTH or not local_part.isascii() or not normal.isprintable():
        raise ValidationError("Enter a valid e-mail address.", code="invalid")
    validate_email(normal)
