"""Signing secrets: their formats, and the keys that they stand for."""

import base64
import binascii
import re
from dataclasses import dataclass
from enum import StrEnum

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from hooks.senders.contract import MAX_SECRET_CHARS, InvalidSecretError

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_MIN_WHSEC_BYTES = 24
_MAX_WHSEC_BYTES = 64


class SecretFormat(StrEnum):
    """What an administrator pastes as the signing secret."""

    NONE = "none"
    TEXT = "text"
    BASE64 = "base64"
    HEX = "hex"
    WHSEC = "whsec"
    WHSEC_OR_WHPK = "whsec-or-whpk"
    ED25519_HEX = "ed25519-hex"
    SPKI_P256 = "spki-p256"


# What each format demands, in words for administrators.
FORMATS = {
    SecretFormat.NONE: "This sender has no signing secret.",
    SecretFormat.TEXT: "Enter text without control characters.",
    SecretFormat.BASE64: "Enter base64.",
    SecretFormat.HEX: "Enter hexadecimal digits, two for each byte.",
    SecretFormat.WHSEC: "Enter whsec_ followed by 24 to 64 bytes in base64.",
    SecretFormat.WHSEC_OR_WHPK: "Enter whsec_ followed by 24 to 64 bytes in base64, or whpk_ "
    "followed by an Ed25519 public key in base64.",
    SecretFormat.ED25519_HEX: "Enter the Ed25519 public key as 64 hexadecimal digits.",
    SecretFormat.SPKI_P256: "Enter the P-256 public key in base64, without header lines.",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key that checks signatures: exactly one of its parts is set."""

    shared: bytes | None = None
    ed25519: Ed25519PublicKey | None = None
    p256: EllipticCurvePublicKey | None = None

    def is_ed25519_signature(self, signature: bytes, material: bytes) -> bool:
        if self.ed25519 is None:
            return False
        try:
            self.ed25519.verify(signature, material)
        except InvalidSignature:
            return False
        return True

    def is_ecdsa_signature(self, signature: bytes, material: bytes) -> bool:
        if self.p256 is None:
            return False
        try:
            self.p256.verify(signature, material, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True


def normalised_secret(format_: SecretFormat, value: str) -> str:
    """Returns the value to store, without surrounding white space.

    Raises ``InvalidSecretError`` if the value does not have the format.
    """
    stripped = value.strip()
    if not 1 <= len(stripped) <= MAX_SECRET_CHARS or not stripped.isprintable():
        raise InvalidSecretError(
            FORMATS[format_]
            if format_ is not SecretFormat.TEXT
            else f"Enter 1 to {MAX_SECRET_CHARS:,} characters without control characters."
        )
    open_key(format_, stripped)
    return stripped


def open_key(format_: SecretFormat, secret: str) -> Key:
    """The key of a secret. Raises ``InvalidSecretError`` if it does not have the format."""
    try:
        return _KEYS[format_](secret)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSecretError(FORMATS[format_]) from None


def decoded_base64(text: str) -> bytes:
    """Decodes standard base64, whose padding may be absent. Raises ``ValueError``."""
    if not _BASE64.fullmatch(text):
        raise ValueError("not base64")
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None


def decoded_hex(text: str) -> bytes:
    """Decodes hexadecimal digits. Raises ``ValueError``."""
    if not _HEX.fullmatch(text):
        raise ValueError("not hexadecimal")
    return bytes.fromhex(text)


def _no_key(secret: str) -> Key:
    raise ValueError("there is no secret")


def _text_key(secret: str) -> Key:
    if not secret:
        raise ValueError("empty")
    return Key(shared=secret.encode())


def _base64_key(secret: str) -> Key:
    return Key(shared=decoded_base64(secret))


def _hex_key(secret: str) -> Key:
    return Key(shared=decoded_hex(secret))


def _whsec_key(secret: str) -> Key:
    key = decoded_base64(secret.removeprefix("whsec_"))
    if not _MIN_WHSEC_BYTES <= len(key) <= _MAX_WHSEC_BYTES:
        raise ValueError("wrong length")
    return Key(shared=key)


# RFC 8032, section 5.1: the field, and the y of the points whose order divides 8.
_ED25519_PRIME = 2**255 - 19
_SMALL_ORDER_HEIGHTS = frozenset(
    {
        0,
        1,
        _ED25519_PRIME - 1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
    }
)


def _whsec_or_whpk_key(secret: str) -> Key:
    if not secret.startswith("whpk_"):
        return _whsec_key(secret)
    return _ed25519_key(decoded_base64(secret.removeprefix("whpk_")))


def _ed25519_hex_key(secret: str) -> Key:
    return _ed25519_key(decoded_hex(secret))


def _ed25519_key(raw: bytes) -> Key:
    """Refuses keys of small order, for which one signature verifies every message."""
    height = int.from_bytes(raw, "little") & ~(1 << 255)
    if height >= _ED25519_PRIME or height in _SMALL_ORDER_HEIGHTS:
        raise ValueError("a key of small order")
    return Key(ed25519=Ed25519PublicKey.from_public_bytes(raw))


def _p256_key(secret: str) -> Key:
    key = load_der_public_key(decoded_base64(secret))
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError("not a P-256 key")  # noqa: TRY004 - the value is wrong, not its type
    return Key(p256=key)


_KEYS = {
    SecretFormat.NONE: _no_key,
    SecretFormat.TEXT: _text_key,
    SecretFormat.BASE64: _base64_key,
    SecretFormat.HEX: _hex_key,
    SecretFormat.WHSEC: _whsec_key,
    SecretFormat.WHSEC_OR_WHPK: _whsec_or_whpk_key,
    SecretFormat.ED25519_HEX: _ed25519_hex_key,
    SecretFormat.SPKI_P256: _p256_key,
}
