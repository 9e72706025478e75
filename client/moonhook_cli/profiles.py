"""Profiles: a server, an organisation and a key, by name."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import tomlkit

from moonhook_cli.errors import CommandError, NotAllowedError
from moonhook_cli.private_files import write_private
from moonhook_cli.redaction import hide
from moonhook_cli.secret_store import SecretStore, find_store

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    url: str
    key: str
    organisation: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key's secret, and the token of the session that it opened last."""

    secret: str
    token: str | None = None


class Profiles:
    """The profiles of this user; secrets are in the keyring or a file of their own."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or Path(platformdirs.user_config_dir("moonhook"))
        self._path = self._directory / "profiles.toml"
        self._store: SecretStore | None = None

    @property
    def store(self) -> SecretStore:
        if self._store is None:
            self._store = find_store(self._directory)
        return self._store

    def names(self) -> list[str]:
        return sorted(self._document())

    def get(self, name: str) -> Profile | None:
        values = self._document().get(name)
        if values is None:
            return None
        return Profile(
            name, str(values["url"]), str(values["key"]), str(values.get("organisation", ""))
        )

    def credentials(self, profile: Profile) -> Credentials:
        stored = self.store.get(profile.name)
        if stored is None:
            raise NotAllowedError(
                f"The secret of profile “{profile.name}” is not in {self.store.description}.",
                f"Log in again: moonhook login {profile.url}",
            )
        values = json.loads(stored)
        hide(values["secret"])
        return Credentials(values["secret"], values.get("token"))

    def save(self, profile: Profile, credentials: Credentials) -> None:
        self.keep(profile, credentials)
        document = self._document()
        document[profile.name] = {
            "url": profile.url,
            "key": profile.key,
            "organisation": profile.organisation,
        }
        write_private(self._path, tomlkit.dumps(document))

    def keep(self, profile: Profile, credentials: Credentials) -> None:
        values = {"secret": credentials.secret, "token": credentials.token}
        self.store.set(profile.name, json.dumps(values))

    def delete(self, profile: Profile) -> None:
        self.store.delete(profile.name)
        document = self._document()
        document.pop(profile.name, None)
        write_private(self._path, tomlkit.dumps(document))

    def _document(self) -> dict[str, dict[str, str]]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            return tomlkit.parse(text).unwrap()
        except tomlkit.exceptions.ParseError as error:
            raise CommandError(
                f"{self._path} is not valid TOML: {error}.", "Mend or delete the file."
            ) from None


@dataclass(frozen=True, slots=True)
class EnvironmentKey:
    """A key given by MOONHOOK_KEY and MOONHOOK_SECRET, for CI."""

    key: str
    secret: str


def environment_key() -> EnvironmentKey | None:
    key, secret = os.environ.get("MOONHOOK_KEY", ""), os.environ.get("MOONHOOK_SECRET", "")
    if not key and not secret:
        return None
    if not key or not secret:
        missing = "MOONHOOK_SECRET" if key else "MOONHOOK_KEY"
        raise NotAllowedError(f"{missing} is not set.", "Set both, or neither.")
    hide(secret)
    return EnvironmentKey(key, secret)
