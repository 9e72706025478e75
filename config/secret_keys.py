"""SECRET_KEY, the peppers and other secrets: generated in development, checked in production."""

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.environment import PRODUCTION, required_in_production

KEY_HINT = "Make one with: openssl rand -hex 32, and keep it."
PEPPER_HINT = "Make one with: echo 1:$(openssl rand -hex 32)"

_MIN_PEPPER_BYTES = 32
# The columns for the pepper version of a digest are 32-bit integers.
_MAX_PEPPER_VERSION = 2**31 - 1


def secret_key(environment: str, data_dir: Path) -> str:
    value = required_in_production("SECRET_KEY", environment, KEY_HINT)
    if value is None:
        return GeneratedSecrets(data_dir / "secrets.json").get("SECRET_KEY")
    if environment == PRODUCTION:
        require_strength(
            "SECRET_KEY",
            value,
            KEY_HINT,
            min_length=50,
            min_different=10,
            forbidden_prefix="django-insecure-",
        )
    return value


def peppers(environment: str, data_dir: Path) -> dict[int, bytes]:
    """Return the pepper of each version, newest first."""
    text = required_in_production("MOONHOOK_PEPPERS", environment, PEPPER_HINT)
    if text is None:
        text = GeneratedSecrets(data_dir / "secrets.json").get("MOONHOOK_PEPPERS")
    parsed = parse_peppers(text)
    if environment == PRODUCTION:
        for version, pepper in parsed.items():
            require_strength(
                f"MOONHOOK_PEPPERS: version {version}",
                pepper,
                PEPPER_HINT,
                min_length=_MIN_PEPPER_BYTES,
                min_different=16,
            )
    return parsed


def parse_peppers(text: str) -> dict[int, bytes]:
    """Parse ``"2:<hex>,1:<hex>"``, newest first, into an ordered mapping of version to key.

    Keys have at least 32 bytes; versions are positive integers. No key or version occurs twice:
    one key under two versions would keep a stolen key in use after a rotation.
    """
    parsed: dict[int, bytes] = {}
    for entry in text.split(","):
        version_text, _, key_hex = entry.strip().partition(":")
        try:
            version, key = int(version_text), bytes.fromhex(key_hex)
        except ValueError:
            raise ImproperlyConfigured(
                "MOONHOOK_PEPPERS must read '2:<hex>,1:<hex>', newest first."
            ) from None
        if not 1 <= version <= _MAX_PEPPER_VERSION or version in parsed:
            raise ImproperlyConfigured("MOONHOOK_PEPPERS: versions must be positive and unique.")
        if len(key) < _MIN_PEPPER_BYTES:
            raise ImproperlyConfigured(
                f"MOONHOOK_PEPPERS: version {version} is shorter than {_MIN_PEPPER_BYTES} bytes "
                f"({2 * _MIN_PEPPER_BYTES} hex digits)."
            )
        if key in parsed.values():
            raise ImproperlyConfigured(
                f"MOONHOOK_PEPPERS: version {version} has the key of another version. {PEPPER_HINT}"
            )
        parsed[version] = key
    return parsed


def require_strength(
    name: str,
    value: str | bytes,
    hint: str,
    *,
    min_length: int,
    min_different: int,
    forbidden_prefix: str = "",
) -> None:
    """Raise ``ImproperlyConfigured``, without the value, if a secret is short or repetitive.

    The limits detect placeholders; they do not measure entropy.
    """
    unit = "characters" if isinstance(value, str) else "bytes"
    if len(value) < min_length:
        problem = f"must have at least {min_length} {unit}"
    elif len(set(value)) < min_different:
        problem = f"is not random: it must have at least {min_different} different {unit}"
    elif forbidden_prefix and isinstance(value, str) and value.startswith(forbidden_prefix):
        problem = f"begins with {forbidden_prefix}: it is a generated placeholder"
    else:
        return
    raise ImproperlyConfigured(f"{name} {problem}. {hint}")


class GeneratedSecrets:
    """Secrets generated in development, in one file that only its owner can read.

    Several processes may start at once. The file is created complete, by a hard link: the first
    process wins, and the others read its secrets.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> str:
        if not self._path.exists():
            self._create()
        values: dict[str, str] = json.loads(self._path.read_text())
        return values[name]

    def _create(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        values = {name: generate() for name, generate in _GENERATORS.items()}
        descriptor, draft = tempfile.mkstemp(dir=self._path.parent)  # mode 0600
        with os.fdopen(descriptor, "w") as file:
            json.dump(values, file, indent=2)
        with contextlib.suppress(FileExistsError):
            os.link(draft, self._path)
        Path(draft).unlink()


_GENERATORS: dict[str, Callable[[], str]] = {
    "SECRET_KEY": lambda: secrets.token_urlsafe(50),
    "MOONHOOK_PEPPERS": lambda: f"1:{secrets.token_hex(32)}",
}
