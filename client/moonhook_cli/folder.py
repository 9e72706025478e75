"""The folder that git keeps: moonhook.toml, scripts/SLUG.lua and libraries/SLUG.lua."""

import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from moonhook_cli.errors import CommandError
from moonhook_cli.merging import conflict_line

SETTINGS = "moonhook.toml"
DIRECTORIES = ("scripts", "libraries")
_SLUG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class FolderError(CommandError):
    """Something is wrong with a file; nothing was sent."""

    def __init__(self, path: str, message: str, advice: str) -> None:
        super().__init__(f"{path}: {message} Nothing was sent.", advice, "FOLDER")


@dataclass(frozen=True, slots=True)
class Folder:
    root: Path

    def read(self, path: str) -> str | None:
        """The text of a file of the folder; ``None`` where there is none."""
        file = self._checked(path)
        if not file.exists():
            return None
        if not file.is_file():
            raise FolderError(path, "is not a file.", "Move it elsewhere.")
        try:
            return file.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise FolderError(
                path, f"is not UTF-8 (byte {error.start + 1}).", "Save it as UTF-8."
            ) from None

    def write(self, path: str, text: str) -> None:
        """Replaces the file as a whole, so that a process that is killed leaves no half of it."""
        file = self._checked(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
        try:
            written.write_bytes(text.encode("utf-8"))
            if file.exists():
                shutil.copymode(file, written)
            written.replace(file)
        except BaseException:
            written.unlink(missing_ok=True)
            raise

    def delete(self, path: str) -> None:
        self._checked(path).unlink(missing_ok=True)

    def files(self, directory: str) -> list[str]:
        """The paths of what is in a directory of the folder; none where there is no directory."""
        place = self._checked(directory)
        return [f"{directory}/{file.name}" for file in place.iterdir()] if place.is_dir() else []

    def sources(self) -> dict[str, str]:
        """The text of each script and library, by path such as ``scripts/sum.lua``."""
        found: dict[str, str] = {}
        slugs: dict[str, str] = {}
        for path in self._lua_files():
            slug = path.rpartition("/")[2].removesuffix(".lua")
            key = unicodedata.normalize("NFC", slug).casefold()
            if key in slugs:
                raise FolderError(
                    path, f"has the same slug as {slugs[key]}.", "Rename or delete one of them."
                )
            slugs[key] = path
            if not _SLUG.fullmatch(slug):
                raise FolderError(
                    path,
                    "has a name that is not letters of ASCII, digits, `-`, `_` or `.`.",
                    f"Rename it; its own name goes to `name` in {SETTINGS}.",
                )
            text = self.read(path) or ""
            if line := conflict_line(text):
                raise FolderError(
                    path, f"line {line} is a conflict marker.", "Resolve the conflict first."
                )
            found[path] = text
        return found

    def path_of(self, file: Path) -> str:
        """The path of a file within the folder; refuses files outside it."""
        absolute = Path.cwd() / file
        try:
            path = Path(_normal(absolute)).relative_to(self.root).as_posix()
        except ValueError:
            raise FolderError(
                str(file), f"is outside {self.root}.", "Use a file in the folder."
            ) from None
        self._checked(path)
        return path

    def _lua_files(self) -> Iterator[str]:
        for directory in DIRECTORIES:
            place = self._checked(directory)
            if not place.is_dir():
                continue
            for file in sorted(place.iterdir()):
                path = f"{directory}/{file.name}"
                if file.suffix == ".lua":
                    yield path
                elif file.is_dir() and any(file.rglob("*.lua")):
                    raise FolderError(
                        path, "is a folder of its own.", f"Move its files into {directory}/."
                    )

    def _checked(self, path: str) -> Path:
        """The file, after a look at each part of its path: no symbolic link, nothing outside."""
        parts = Path(path).parts
        if not parts or ".." in parts or Path(path).is_absolute():
            raise FolderError(path, f"is outside {self.root}.", "Use a path within the folder.")
        file = self.root
        for part in parts:
            file /= part
            if file.is_symlink():
                raise FolderError(path, "is a symbolic link.", "Put the file itself there.")
        return file


def find_folder() -> Folder:
    """The nearest folder with a ``moonhook.toml``, from the current one upwards."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / SETTINGS).exists() or (directory / SETTINGS).is_symlink():
            return Folder(directory)
    raise CommandError(
        f"There is no {SETTINGS} here or above.", "Make one: moonhook init", "NO_FOLDER"
    )


def slug_of(name: str, taken: Mapping[str, object]) -> str:
    """A free slug for a script's name."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    base = re.sub(r"[^a-z0-9_]+", "-", plain).strip("-")[:80] or "script"
    slug, number = base, 2
    while slug in taken:
        slug, number = f"{base}-{number}", number + 1
    return slug


def _normal(path: Path) -> str:
    """The path without `..`, without following symbolic links."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return str(Path(*parts))
