"""Authenticated encryption at rest: AES-256-GCM with keys derived from the peppers.

Each purpose has keys of its own (HKDF-SHA256, RFC 5869). They are not in the database and rotate
with the peppers: the newest one encrypts, and each ciphertext names the version that it needs.
Apps register their encrypted columns and their digests, to re-encrypt and to count them.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db.models import BinaryField, Model, QuerySet
from django.db.models.functions import Substr

VERSION_BYTES = 4
_NONCE_BYTES = 12
CountByVersion = Callable[[], Counter[int]]
_digests: dict[str, CountByVersion] = {}


class DecryptionError(Exception):
    """The ciphertext was changed or moved, or its pepper is missing."""


@dataclass(frozen=True, slots=True)
class Cipher:
    """Encrypts for one purpose.

    ``context`` is authenticated as associated data: a ciphertext that was copied to another context
    cannot be decrypted.
    """

    purpose: bytes

    def encrypt(self, plaintext: bytes, context: str) -> bytes:
        """Returns the pepper version, the nonce and the ciphertext, concatenated."""
        version = next(iter(settings.PEPPERS))
        nonce = os.urandom(_NONCE_BYTES)
        aead = _aead(settings.PEPPERS[version], self.purpose)
        sealed = aead.encrypt(nonce, plaintext, context.encode())
        return version.to_bytes(VERSION_BYTES, "big") + nonce + sealed

    def decrypt(self, ciphertext: bytes, context: str) -> bytes:
        """Reverses ``encrypt`` with the same context. Raises ``DecryptionError``."""
        version = key_version(ciphertext)
        pepper = settings.PEPPERS.get(version)
        if pepper is None:
            raise DecryptionError(f"pepper {version} is missing")
        nonce, sealed = (
            ciphertext[VERSION_BYTES : VERSION_BYTES + _NONCE_BYTES],
            ciphertext[VERSION_BYTES + _NONCE_BYTES :],
        )
        try:
            aead = _aead(pepper, self.purpose)
            return aead.decrypt(nonce, sealed, context.encode())
        except (InvalidTag, ValueError):
            raise DecryptionError("the ciphertext was changed or moved") from None


def key_version(ciphertext: bytes) -> int:
    """The version of the pepper that the ciphertext needs."""
    return int.from_bytes(ciphertext[:VERSION_BYTES], "big")


@cache
def _aead(pepper: bytes, purpose: bytes) -> AESGCM:
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(pepper))


class Ciphertext(NamedTuple):
    """A nullable or required column of ciphertexts.

    ``name`` groups columns in the report on peppers; ``context_of`` returns the context with which
    a row's column is encrypted.
    """

    name: str
    model: type[Model]
    column: str
    cipher: Cipher
    context_of: Callable[[Any], object]

    @property
    def rows(self) -> QuerySet[Any]:
        """The rows that have one."""
        rows = self.model._default_manager.filter(**{f"{self.column}__isnull": False})
        return rows.order_by()


_registered: list[Ciphertext] = []


def register_ciphertext(ciphertext: Ciphertext) -> None:
    _registered.append(ciphertext)


def registered_ciphertexts() -> Sequence[Ciphertext]:
    return _registered


def reencrypt() -> int:
    """Encrypts all registered columns with the newest pepper. Returns the number of rows changed.

    A row that is written at the same time keeps its new value, and is re-encrypted as well if it
    was written by a node that does not use the newest pepper yet. Raises ``DecryptionError`` if a
    pepper is missing.
    """
    return sum(_is_moved(each, row) for each in _registered for row in each.rows.iterator())


def _is_moved(each: Ciphertext, row: Model) -> bool:
    """Whether the row was changed: not if it uses the newest pepper, or was deleted."""
    newest = next(iter(settings.PEPPERS))
    context = str(each.context_of(row))
    rows = each.model._default_manager.filter(pk=row.pk)
    found: bytes | memoryview[int] | None = getattr(row, each.column)
    while found is not None and key_version(old := bytes(found)) != newest:
        renewed = each.cipher.encrypt(each.cipher.decrypt(old, context), context)
        if rows.filter(**{each.column: old}).update(**{each.column: renewed}):
            return True
        # The row was written since it was read.
        found = rows.values_list(each.column, flat=True).first()
    return False


def register_digests(name: str, count: CountByVersion) -> None:
    """Registers rows with digests by the name under which they are reported.

    ``count`` returns their number by the pepper's version.
    """
    _digests[name] = count


class PepperUse(NamedTuple):
    version: int
    is_configured: bool
    rows: Mapping[str, int]
    """By name: first of digests, then of ciphertexts."""

    @property
    def is_needed(self) -> bool:
        return any(self.rows.values())


def pepper_use() -> list[PepperUse]:
    """Return the use of every version that is configured or in use, newest first.

    Sessions and recovery codes do not record their version; they become invalid with it.
    """
    counts = {name: count() for name, count in _digests.items()}
    for each in registered_ciphertexts():
        counts.setdefault(each.name, Counter()).update(_by_ciphertext(each.rows, each.column))
    versions = {*settings.PEPPERS, *(version for count in counts.values() for version in count)}
    return [
        PepperUse(
            version,
            version in settings.PEPPERS,
            {name: count[version] for name, count in counts.items()},
        )
        for version in sorted(versions, reverse=True)
    ]


def _by_ciphertext(rows: QuerySet[Any], column: str) -> Counter[int]:
    """Count rows by the version that their ciphertext names; only its beginning is read."""
    beginnings = rows.annotate(
        beginning=Substr(column, 1, VERSION_BYTES, output_field=BinaryField())
    ).values_list("beginning", flat=True)
    return Counter(key_version(bytes(beginning)) for beginning in beginnings.iterator())
