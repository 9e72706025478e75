"""Encryption of scripts' secrets at rest, bound to the organisation and the secret's name."""

import uuid

from core.encryption import Cipher, DecryptionError, key_version

__all__ = ["DecryptionError", "context_of", "decrypt", "encrypt", "key_version"]

_CIPHER = Cipher(b"moonhook secrets")
encrypt = _CIPHER.encrypt
decrypt = _CIPHER.decrypt


def context_of(organisation_id: uuid.UUID, name: str) -> str:
    """The associated data of a secret."""
    return f"{organisation_id}:{name}"
