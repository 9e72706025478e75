"""What the server had at the last pull or push, the base of merges, and what a push is sending.

Both are by environment.

It is in `.moonhook/`, which git ignores.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from moonhook_cli.folder import Folder, FolderError

_DIRECTORY = ".moonhook"
_SENT = ".sent"
_STATE = re.compile(r"\.moonhook/(default|env-[A-Za-z0-9_-]{1,64})\.json")
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class State:
    organisation: str
    """The organisation's id."""
    release: int | None
    """The number of its newest release."""
    manifest: dict[str, Any]
    files: dict[str, str]
    """The texts as the server's side of a merge, by path."""


def read_state(folder: Folder, environment: str | None, organisation: str) -> State | None:
    """The newest of the organisation; ``None`` before its first pull or push.

    Environments may share an organisation, and what one of them put live is known to the others.
    """
    own = _path(environment)
    paths = {own, *(path for path in folder.files(_DIRECTORY) if _STATE.fullmatch(path))}
    found = [
        (state.release or 0, path == own, state)
        for path in sorted(paths)
        if (state := _read(folder, path)) is not None and state.organisation == organisation
    ]
    return max(found, key=lambda each: each[:2])[2] if found else None


def _read(folder: Folder, path: str) -> State | None:
    text = folder.read(path)
    if text is None:
        return None
    try:
        return State(**json.loads(text))
    except (ValueError, TypeError):
        raise FolderError(path, "is damaged.", "Delete the file, then run: moonhook pull") from None


def write_state(folder: Folder, environment: str | None, state: State) -> None:
    folder.write(f"{_DIRECTORY}/.gitignore", "*\n")
    values = {name: getattr(state, name) for name in State.__slots__}
    folder.write(_path(environment), json.dumps(values, ensure_ascii=False))


def read_sent(folder: Folder, environment: str | None, organisation: str) -> dict[str, str] | None:
    """The files of a push that ended before it knew whether they are live; ``None`` without one."""
    text = folder.read(_path(environment, _SENT))
    try:
        sent = json.loads(text) if text else {}
    except ValueError:
        return None
    files: dict[str, str] | None = sent.get(organisation)
    return files


def write_sent(
    folder: Folder, environment: str | None, organisation: str, files: dict[str, str]
) -> None:
    text = json.dumps({organisation: files}, ensure_ascii=False)
    folder.write(_path(environment, _SENT), text)


def forget_sent(folder: Folder, environment: str | None) -> None:
    folder.delete(_path(environment, _SENT))


def _path(environment: str | None, suffix: str = "") -> str:
    if environment is not None and not _ENVIRONMENT.fullmatch(environment):
        raise FolderError(
            f"[env.{environment}]", "has a name that is not letters, digits, `-` or `_`.",
            "Rename it.",
        )  # fmt: skip
    name = "default" if environment is None else f"env-{environment}"
    return f"{_DIRECTORY}/{name}{suffix}.json"
