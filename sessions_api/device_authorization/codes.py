"""Device codes, which programs keep, and user codes, which people type."""

import re
import secrets

# Consonants that do not look alike and form no words (RFC 8628, 6.1): 34 bits in eight of them.
_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8
_USER_CODE = re.compile(rf"[{_ALPHABET}]{{{_LENGTH}}}")
_DEVICE_CODE_BYTES = 32


def generate_device_code() -> str:
    """256 random bits, as 43 characters that need no escaping in a form."""
    return secrets.token_urlsafe(_DEVICE_CODE_BYTES)


def generate_user_code() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


def shown(user_code: str) -> str:
    """The code in two groups: ``WDJB-MJHT``."""
    return f"{user_code[:4]}-{user_code[4:]}"


def typed_user_code(text: str) -> str | None:
    """The code as it was generated, from lower case and any grouping; ``None`` for no code."""
    code = re.sub(r"[\s\-–_.]", "", text).upper()
    return code if _USER_CODE.fullmatch(code) else None
