"""Canonical forms of e-mail addresses, phone numbers and networks, as people enter them."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MAX_LENGTH = 254
_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_SEPARATORS = str.maketrans("", "", " -.()/")
MAX_NETWORKS = 50
# Parsing takes longer than everything else, and requests bring the same networks again.
_network = lru_cache(maxsize=1024)(ip_network)


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


def canonical_phone(typed: str) -> str:
    """The number without separators; ``""`` stays empty."""
    return typed.strip().translate(_SEPARATORS)


def validate_phone(number: str) -> None:
    if not _E164.fullmatch(number):
        raise ValidationError(
            "Enter the number with its country code, such as +491701234567.", code="invalid"
        )


def canonical_networks(texts: Sequence[str], *, maximum: int = MAX_NETWORKS) -> list[str]:
    """The networks in canonical form. Raises ``ValidationError`` for an invalid one."""
    if len(texts) > maximum:
        raise ValidationError(f"At most {maximum} networks.", code="max_length")
    try:
        return [str(ip_network(text.strip())) for text in texts]
    except ValueError:
        raise ValidationError(
            "Enter networks such as 192.0.2.0/24 or 2001:db8::/48, or single addresses.",
            code="invalid",
        ) from None


def is_within(client_address: str, networks: Sequence[str]) -> bool:
    """Whether the address is in one of the networks; an empty list allows every address.

    Networks come from rows, so what is no list of networks allows none.
    """
    if not isinstance(networks, list | tuple):
        return False
    if not networks:
        return True
    if not client_address:
        return False
    address = ip_address(client_address)
    try:
        return any(address in _network(network) for network in networks)
    except (ValueError, TypeError):
        return False
