"""Where secrets of profiles are kept: the system's keyring, else a file of mode 0600."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moonhook_cli.errors import CommandError
from moonhook_cli.private_files import write_private

SERVICE = "moonhook-cli"


class FileStore:
    """Secrets by profile in one JSON file."""

    description = "a file of mode 0600"

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> str | None:
        value = self._read().get(name)
        return value if isinstance(value, str) else None

    def set(self, name: str, value: str) -> None:
        self._write(self._read() | {name: value})

    def delete(self, name: str) -> None:
        secrets = self._read()
        if secrets.pop(name, None) is not None:
            self._write(secrets)

    def _read(self) -> dict[str, Any]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        if self._path.stat().st_mode & 0o077:
            raise CommandError(
                f"{self._path} can be read by other users.",
                f"Run: chmod 600 {self._path} (and rotate the keys in it if others use this host).",
            )
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise CommandError(
                f"{self._path} is damaged.", "Delete the file, then run: moonhook login URL"
            )
        return document

    def _write(self, secrets: dict[str, Any]) -> None:
        write_private(self._path, json.dumps(secrets))


class KeyringStore:
    """Secrets by profile in the system's keyring."""

    description = "the keyring"

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def get(self, name: str) -> str | None:
        with _keyring_errors():
            value = self._backend.get_password(SERVICE, name)
        return value if isinstance(value, str) else None

    def set(self, name: str, value: str) -> None:
        with _keyring_errors():
            self._backend.set_password(SERVICE, name, value)

    def delete(self, name: str) -> None:
        if self.get(name) is not None:
            with _keyring_errors():
                self._backend.delete_password(SERVICE, name)


@contextmanager
def _keyring_errors() -> Iterator[None]:
    from keyring.errors import KeyringError  # noqa: PLC0415  An optional dependency.

    try:
        yield
    except KeyringError as error:
        raise CommandError(
            f"The keyring refuses: {error}.",
            "Unlock it, or set PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring to use a file.",
        ) from None


SecretStore = FileStore | KeyringStore


def find_store(directory: Path) -> SecretStore:
    """The keyring where there is a usable one, else a file in this directory."""
    try:
        import keyring  # noqa: PLC0415  An optional dependency.
    except ImportError:
        return FileStore(directory / "secrets.json")
    backend = keyring.get_keyring()
    # Backends that keep nothing, such as `fail` and `null`, have no positive priority.
    if getattr(backend, "priority", 0) <= 0:
        return FileStore(directory / "secrets.json")
    return KeyringStore(backend)
