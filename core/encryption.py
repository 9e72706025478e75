"""Authenticated encryption at rest: AES-256-GCM with keys derived from the peppers.

Each purpose has keys of its own (HKDF-SHA256, RFC 5869). They are not in the database and rotate
with the peppers: the newest one encrypts, and each ciphertext names the version that it needs.
"""

import os
from dataclasses import dataclass
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

VERSION_BYTES = 4
_NONCE_BYTES = 12


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
