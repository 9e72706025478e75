"""Where settings come from: the environment, files named by it, and secrets made on first use."""

import contextlib
import json
import math
import os
import secrets
import tempfile
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping


class _Variables(FileAwareMapping):
    """The environment, where ``NAME_FILE`` names a file that holds the value of ``NAME``.

    Secrets are often mounted as files, and files often end with a newline that nobody meant.
    """

    def __getitem__(self, key: str) -> str:
        try:
            return str(super().__getitem__(key)).strip()
        except OSError as error:
            problem = error.strerror
        except UnicodeDecodeError:
            problem = "it is not text in UTF-8"
        raise ImproperlyConfigured(f"The file that {key}_FILE names cannot be read: {problem}.")


class _Env(environ.Env):
    ENVIRON = _Variables(cache=False)


env = _Env()

# Of control groups, version 2: microseconds in each period, or "max", and the period.
_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")

KEY_HINT = "Make one with: openssl rand -hex 32, and keep it."
MIN_PEPPER_BYTES = 32
PEPPER_HINT = "Make one with: echo 1:$(openssl rand -hex 32)"
# As far as the columns reach that say which pepper a digest is under.
_MAX_PEPPER_VERSION = 2**31 - 1

DEVELOPMENT = "development"
PRODUCTION = "production"


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = env.str(name, default=default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def integer(name: str, default: int, *, minimum: int = 0) -> int:
    text = env.str(name, default=str(default))
    if not text.isdecimal() or int(text) < minimum:
        raise ImproperlyConfigured(f"{name} must be a whole number of at least {minimum}.")
    return int(text)


def integers(name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Comma-separated whole numbers; none at all for an empty text."""
    text = env.str(name, default=",".join(map(str, default)))
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() for part in parts):
        raise ImproperlyConfigured(f"{name} must list whole numbers like 5,20,60.")
    return tuple(map(int, parts))


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A comma-separated list of networks in CIDR notation; empty without the variable."""
    try:
        return [ip_network(text.strip()) for text in env.list(name, default=[])]
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must list networks like 10.1.0.0/16,127.0.0.1/32."
        ) from None


def usable_cores(limit_file: Path = _CPU_LIMIT) -> int:
    """The cores that this process may use: a container's limit counts, a part of a core as one."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = limit_file.read_text().split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        # No such file, or "max" for no limit.
        return cores


def data_directory(path: Path) -> Path:
    """The directory, resolved. One that is made here is its owner's alone; others keep their mode.

    Where it cannot be made, the first that needs it says so: not every command does.
    """
    directory = path.resolve()
    with contextlib.suppress(OSError):
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def required_in_production(name: str, environment: str, hint: str) -> str | None:
    """The variable's value, or None in development; in production its absence stops the start."""
    value = env.str(name, default="")
    if value:
        return value
    if environment == PRODUCTION:
        raise ImproperlyConfigured(f"{name} (or {name}_FILE) is not set. {hint}")
    return None


def require_strength(
    name: str,
    value: str | bytes,
    hint: str,
    *,
    min_length: int,
    min_different: int,
    forbidden_prefix: str = "",
) -> None:
    """Stops a start whose secret is too short or repeats a few characters; never shows it.

    The bounds tell placeholders from random values and are no measure of entropy.
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
    """Secrets that development makes by itself, kept in one file that only its owner can read.

    Several processes may start at once: the file appears whole by a hard link, the first one
    wins and the others read what it wrote.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> str:
        return self._load()[name]

    def _load(self) -> dict[str, str]:
        if not self._path.exists():
            self._create()
        values: dict[str, str] = json.loads(self._path.read_text())
        return values

    def _create(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        values = {name: make() for name, make in _GENERATORS.items()}
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


def parse_peppers(text: str) -> dict[int, bytes]:
    """``"2:<hex>,1:<hex>"``, newest first, as an ordered mapping of version to key.

    Each key is at least 32 bytes; versions are positive integers. Both differ from each other:
    one key under two versions would keep a stolen one in use after a rotation.
    """
    peppers: dict[int, bytes] = {}
    for entry in text.split(","):
        version_text, _, key_hex = entry.strip().partition(":")
        try:
            version, key = int(version_text), bytes.fromhex(key_hex)
        except ValueError:
            raise ImproperlyConfigured(
                "MOONHOOK_PEPPERS must read '2:<hex>,1:<hex>', newest first."
            ) from None
        if not 1 <= version <= _MAX_PEPPER_VERSION or version in peppers:
            raise ImproperlyConfigured("MOONHOOK_PEPPERS: versions are positive and each its own.")
        if len(key) < MIN_PEPPER_BYTES:
            raise ImproperlyConfigured(
                f"MOONHOOK_PEPPERS: version {version} is shorter than {MIN_PEPPER_BYTES} bytes "
                f"({2 * MIN_PEPPER_BYTES} hex digits)."
            )
        if key in peppers.values():
            raise ImproperlyConfigured(
                f"MOONHOOK_PEPPERS: version {version} has the key of another version. {PEPPER_HINT}"
            )
        peppers[version] = key
    return peppers
