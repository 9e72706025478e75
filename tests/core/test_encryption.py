"""Encryption at rest: bound to its purpose and its context."""

import pytest

from core.encryption import Cipher, DecryptionError

LETTERS, NOTES = Cipher(b"letters"), Cipher(b"notes")


def test_the_same_purpose_and_context_decrypt() -> None:
    assert LETTERS.decrypt(LETTERS.encrypt(b"hello", "alice"), "alice") == b"hello"


def test_another_purpose_cannot_decrypt() -> None:
    with pytest.raises(DecryptionError):
        NOTES.decrypt(LETTERS.encrypt(b"hello", "alice"), "alice")


def test_another_context_cannot_decrypt() -> None:
    with pytest.raises(DecryptionError):
        LETTERS.decrypt(LETTERS.encrypt(b"hello", "alice"), "bob")
