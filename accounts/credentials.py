"""Secrets: generated here, stored as digests, compared in constant time.

A secret consists of ``mh`` + kind + ``_``, 40 random base62 characters (238 bits), and a CRC-32 of
all that as 6 base62 characters. The checksum finds mistyped secrets without a query, and lets
secret scanners be sure of a match. The database stores the HMAC-SHA256 under a versioned pepper,
which comes from the environment. With 238 bits a slow hash would add nothing (OWASP ASVS 5.0,
6.5.2).
"""

import hmac
import secrets
import string
import zlib
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 40
CHECKSUM_LENGTH = 6
API_KEY_ID_PREFIX = "mhk_"
API_KEY_ID_LENGTH = 12
PIN_LENGTH = 6


class SecretKind(StrEnum):
    """The kinds of secrets; the value is the prefix."""

    API_KEY = "mhs_"
    DEVICE_TOKEN = "mht_"
    SESSION = "mhx_"
    CALL_TOKEN = "mhc_"


@dataclass(frozen=True, slots=True)
class Digest:
    """HMAC-SHA256 in hex, and the version of the pepper that made it."""

    value: str
    pepper_version: int


def generate_secret(kind: SecretKind) -> str:
    body = kind + _random_text(RANDOM_LENGTH)
    return body + _checksum(body)


def generate_api_key_id() -> str:
    return API_KEY_ID_PREFIX + _random_text(API_KEY_ID_LENGTH)


def is_api_key_id(text: str) -> bool:
    """Whether the text has the form of an API key's public half."""
    return (
        text.startswith(API_KEY_ID_PREFIX)
        and len(text) == len(API_KEY_ID_PREFIX) + API_KEY_ID_LENGTH
        and set(text[len(API_KEY_ID_PREFIX) :]) <= set(ALPHABET)
    )


def derive_pin(code_id: object, pepper_version: int) -> str:
    """The PIN of the code with that random id, derived by HMAC instead of being stored.

    A delivery that is retried thus sends the same PIN. Raises ``KeyError`` for a retired pepper.
    """
    number = int(_hmac(pepper_version, f"pin-of-code:{code_id}"), 16)
    return f"{number % 10**PIN_LENGTH:0{PIN_LENGTH}d}"


def newest_pepper() -> int:
    """The version of the pepper that new digests use."""
    return next(iter(settings.PEPPERS))


def is_well_formed(secret: object, kind: SecretKind) -> bool:
    """Whether the secret has the kind's prefix and length, and a valid checksum."""
    if not isinstance(secret, str) or not secret.startswith(kind):
        return False
    if len(secret) != len(kind) + RANDOM_LENGTH + CHECKSUM_LENGTH or not secret.isascii():
        return False
    body, checksum = secret[:-CHECKSUM_LENGTH], secret[-CHECKSUM_LENGTH:]
    return hmac.compare_digest(_checksum(body), checksum)


def digest(secret: str) -> Digest:
    """The digest to store, under the newest pepper."""
    version = newest_pepper()
    return Digest(_hmac(version, secret), version)


def digests(secret: str) -> list[str]:
    """The digests under every pepper, newest first, to look a row up by its digest."""
    return [_hmac(version, secret) for version in settings.PEPPERS]


def matches(secret: str, stored: Digest | None) -> bool:
    """Whether the secret is the stored one. Takes as long for a missing row (``None``)."""
    version = newest_pepper() if stored is None else stored.pepper_version
    if version not in settings.PEPPERS:
        return False
    computed = _hmac(version, secret)
    return hmac.compare_digest(computed, computed[::-1] if stored is None else stored.value)


def pin_material(challenge_id: object, pin: str) -> str:
    """The text to digest for a PIN: with its challenge, so that equal PINs have other digests."""
    return f"pin:{challenge_id}:{pin}"


def _hmac(version: int, secret: str) -> str:
    return hmac.digest(settings.PEPPERS[version], secret.encode(), "sha256").hex()


def _random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(body: str) -> str:
    number, text = zlib.crc32(body.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, index = divmod(number, len(ALPHABET))
        text = ALPHABET[index] + text
    return text
