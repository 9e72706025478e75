"""Reading environment variables. ``ImproperlyConfigured`` names the variable that is wrong."""

import contextlib
import math
import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

DEVELOPMENT = "development"
PRODUCTION = "production"

# The CPU limit of control groups, version 2: microseconds per period, or "max", and the period.
_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
# The memory limit of control groups, version 2: bytes, or "max".
_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class _Variables(FileAwareMapping):
    """The environment; ``NAME_FILE`` names a file that contains the value of ``NAME``.

    Secrets are often mounted as files, which often end with an unintended newline.
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


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = env.str(name, default=default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def switch(name: str, default: str) -> bool:
    """Read ``on`` or ``off``."""
    return choice(name, default, ("on", "off")) == "on"


def integer(name: str, default: int, *, minimum: int = 0) -> int:
    text = env.str(name, default=str(default))
    if not text.isdecimal() or int(text) < minimum:
        raise ImproperlyConfigured(f"{name} must be a whole number of at least {minimum}.")
    return int(text)


def integers(name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Read comma-separated whole numbers; an empty value is an empty tuple."""
    text = env.str(name, default=",".join(map(str, default)))
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() for part in parts):
        raise ImproperlyConfigured(f"{name} must list whole numbers like 5,20,60.")
    return tuple(map(int, parts))


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Read comma-separated networks in CIDR notation; none if the variable is not set."""
    try:
        return [ip_network(text.strip()) for text in env.list(name, default=[])]
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must list networks like 10.1.0.0/16,127.0.0.1/32."
        ) from None


def required_in_production(name: str, environment: str, hint: str) -> str | None:
    """Return the value, or None if it is not set in development. Raise if not in production."""
    value = env.str(name, default="")
    if value:
        return value
    if environment == PRODUCTION:
        raise ImproperlyConfigured(f"{name} (or {name}_FILE) is not set. {hint}")
    return None


def public_url(environment: str, port: int) -> SplitResult:
    """Read ``PUBLIC_URL``, without a slash at its end."""
    text = required_in_production("PUBLIC_URL", environment, "Example: https://hooks.example.com")
    url = urlsplit((text or f"http://127.0.0.1:{port}").rstrip("/"))
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ImproperlyConfigured("PUBLIC_URL must be an http or https address.")
    return url


def data_directory(path: Path) -> Path:
    """Resolve the directory, and create it for its owner alone if it is missing.

    A directory that cannot be created is reported where it is first used: not every command uses
    it.
    """
    directory = path.resolve()
    with contextlib.suppress(OSError):
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def database(data_dir: Path, *, timeout_seconds: int, connect_seconds: int) -> dict[str, Any]:
    """Read ``DATABASE_URL``; the default is SQLite in the data directory."""
    settings: dict[str, Any] = env.db(
        "DATABASE_URL", default=f"sqlite:///{data_dir / 'moonhook.sqlite3'}"
    )
    if settings["ENGINE"] == "django.db.backends.sqlite3":
        return settings | {
            "ENGINE": "core.database.sqlite",
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                # A transaction takes its write lock when it starts; taken later, it could fail.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
            "TEST": {"NAME": str(data_dir / "test.sqlite3")},
        }
    if settings["ENGINE"] == "django.db.backends.postgresql":
        settings = settings | _several_servers(settings)
        options = {
            "connect_timeout": connect_seconds,
            "options": f"-c statement_timeout={timeout_seconds}s"
            " -c idle_in_transaction_session_timeout=60s",
            # Prepare a statement at its first use; most of Django's cursors never prepare.
            "prepare_threshold": 0,
            "pool": {
                "min_size": 1,
                "max_size": integer("DATABASE_POOL_SIZE", 24, minimum=1),
                "timeout": connect_seconds,
                # Reconnect no longer than a request waits. The next request then starts afresh
                # instead of waiting for a backoff that has grown.
                "reconnect_timeout": connect_seconds,
            },
        }
        # The URL's own options (sslmode, …) stay.
        return settings | {
            "ENGINE": "core.database.postgresql",
            "OPTIONS": settings.get("OPTIONS", {}) | options,
        }
    raise ImproperlyConfigured("DATABASE_URL must name SQLite or PostgreSQL.")


def _several_servers(settings: dict[str, Any]) -> dict[str, Any]:
    """The servers that ``DATABASE_URL`` lists, each with its own port, as libpq takes them.

    django-environ would give all of them the port of one, and keep the brackets of IPv6 addresses.
    """
    try:
        listed = urlsplit(env.str("DATABASE_URL")).netloc.rpartition("@")[2].split(",")
        if len(listed) == 1:
            return {}
        servers = [urlsplit(f"//{each}") for each in listed]
        ports = [str(server.port or 5432) for server in servers]
    except ValueError:
        raise ImproperlyConfigured(
            "DATABASE_URL must list servers like postgres://user@one:5432,two:5432/name."
        ) from None
    return {
        "HOST": ",".join(unquote(server.hostname or "") for server in servers),
        "PORT": ",".join(ports),
        # Otherwise the first server that responds would be used, which may be a standby.
        "OPTIONS": {"target_session_attrs": "read-write"} | settings.get("OPTIONS", {}),
    }


def email(url: str | None, outbox: Path) -> dict[str, Any]:
    """Return Django's ``EMAIL_…`` settings; without a URL, e-mails are written to the outbox."""
    if url is None:
        return {
            "EMAIL_BACKEND": "accounts.messages.outbox.EmailOutbox",
            "EMAIL_FILE_PATH": str(outbox),
        }
    return {**environ.Env.email_url_config(url), "EMAIL_TIMEOUT": 15}


def metrics_networks(
    *, is_on: bool, has_token: bool, environment: str
) -> list[IPv4Network | IPv6Network]:
    """Read ``METRICS_NETWORKS``; metrics without a token or networks are for this machine only."""
    allowed = networks("METRICS_NETWORKS")
    if not is_on or has_token or allowed:
        return allowed
    if environment == PRODUCTION:
        raise ImproperlyConfigured(
            "METRICS=on needs METRICS_TOKEN or METRICS_NETWORKS: "
            "production does not show its metrics to everyone."
        )
    return list(_LOOPBACK)


def usable_cores(limit_file: Path = _CPU_LIMIT) -> int:
    """Count the cores available to this process, with a container's limit rounded up."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = limit_file.read_text().split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        # No such file, or "max" for no limit.
        return cores


def usable_memory_bytes(limit_file: Path = _MEMORY_LIMIT) -> int:
    """The memory of the machine, or a container's limit if that is less."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(memory_bytes, int(limit_file.read_text()))
    except (OSError, ValueError):
        # No such file, or "max" for no limit.
        return memory_bytes
