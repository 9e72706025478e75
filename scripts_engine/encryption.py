"""Encryption of secrets at rest: AES-256-GCM, bound to the organisation and the secret's name.

The keys are derived from the peppers (HKDF-SHA256, RFC 5869), so they are not in the database and
rotate with the peppers. The newest one encrypts; each ciphertext names the version that it needs.
Organisation and name are authenticated as associated data, so that a ciphertext copied to another
tenant or name cannot be decrypted.
"""

import os
import uuid
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_VERSION_BYTES = 4
_NONCE_BYTES = 12


class DecryptionError(Exception):
    """The ciphertext was changed or moved, or its pepper is missing."""


def context_of(organisation_id: uuid.UUID, name: str) -> str:
    """The associated data of a secret."""
    return f"{organisation_id}:{name}"


def encrypt(plaintext: bytes, context: str) -> bytes:
    """Returns the pepper version, the nonce and the ciphertext, concatenated."""
    version = next(iter(settings.PEPPERS))
    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(_key(settings.PEPPERS[version])).encrypt(nonce, plaintext, context.encode())
    return version.to_bytes(_VERSION_BYTES, "big") + nonce + sealed


def decrypt(ciphertext: bytes, context: str) -> bytes:
    """Reverses ``encrypt`` with the same context. Raises ``DecryptionError``."""
    version = key_version(ciphertext)
    if version not in settings.PEPPERS:
        raise DecryptionError(f"pepper {version} is missing")
    nonce, sealed = (
        ciphertext[_VERSION_BYTES : _VERSION_BYTES + _NONCE_BYTES],
        ciphertext[_VERSION_BYTES + _NONCE_BYTES :],
    )
    try:
        return AESGCM(_key(settings.PEPPERS[version])).decrypt(nonce, sealed, context.encode())
    except (InvalidTag, ValueError):
        raise DecryptionError("the ciphertext was changed or moved") from None


def key_version(ciphertext: bytes) -> int:
    """The version of the pepper that the ciphertext needs."""
    return int.from_bytes(ciphertext[:_VERSION_BYTES], "big")


@cache
def _key(pepper: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"moonhook secrets").derive(pepper)
