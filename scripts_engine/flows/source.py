"""Checks a script's source, warns of likely mistakes in it, and compares versions."""

from typing import NamedTuple

from django.core.exceptions import ValidationError

from accounts.models import Organisation
from core.plain_text import validate_plain_text
from scripts_engine.line_diff import unified_diff
from scripts_engine.models import ScriptVersion
from scripts_engine.sandbox import (
    MAX_SOURCE_BYTES,
    GlobalUse,
    GlobalUseKind,
    SandboxBusy,
    SandboxUnavailable,
)
from scripts_engine.sandbox_pool import sandbox_pool


class SourceError(Exception):
    """The source does not compile, or requires a library that it cannot have.

    ``line`` counts from 1, and is ``None`` if unknown.
    """

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    @property
    def flaw(self) -> str:
        """Lua's message without the script's name and the line."""
        _, found, flaw = self.message.partition(f":{self.line}: ")
        return flaw if found else self.message

    @property
    def text(self) -> str:
        """The flaw behind the line, for a form."""
        return self.flaw if self.line is None else f"Line {self.line}: {self.flaw}"


class SourceWarning(NamedTuple):
    line: int
    """Counts from 1."""
    message: str
    is_note: bool
    """Whether the source works as written, but could be clearer."""


def check_source(organisation: Organisation, source: str, script_name: str) -> None:
    """Checks that the source compiles, in a sandbox, because a source may attack the compiler.

    Raises ``SourceError`` with the line, or ``ValidationError`` for text that is invalid or too
    long.
    """
    try:
        validate_source_text(source)
    except ValidationError as error:
        raise ValidationError({"source": error}) from None
    flaw = sandbox_pool().check_syntax(str(organisation.pk), source.encode(), script_name)
    if flaw is not None:
        raise SourceError(flaw.message, flaw.line)


def validate_source_text(source: str) -> None:
    """Raises ``ValidationError`` if the source is too long or is not valid text."""
    validate_plain_text(source)
    size = len(source.encode())
    if size > MAX_SOURCE_BYTES:
        raise ValidationError(
            f"A source may have at most {MAX_SOURCE_BYTES} bytes in UTF-8; this one has {size}.",
            code="max_length",
        )


def with_lua_line_ends(source: str) -> str:
    """Converts CRLF, which browsers send, to LF: Lua counts lines by it in its messages."""
    return source.replace("\r\n", "\n")


def warnings_of(organisation: Organisation, source: str) -> list[SourceWarning]:
    """Lists the warnings by line. Empty if the source does not compile, or no sandbox is free."""
    try:
        validate_source_text(source)
        uses = sandbox_pool().list_globals(str(organisation.pk), source.encode())
    except (ValidationError, SandboxBusy, SandboxUnavailable):
        return []
    return [_warning_of(use) for use in uses]


def _warning_of(use: GlobalUse) -> SourceWarning:
    if use.kind is GlobalUseKind.ASSIGNED:
        return SourceWarning(use.line, f"Assigns a global `{use.name}`; add local.", is_note=True)
    if use.suggestion == use.name:
        message = f"`{use.name}` is not defined here: the local `{use.name}` is out of scope."
    elif use.suggestion:
        message = f"`{use.name}` is not defined. Did you mean `{use.suggestion}`?"
    else:
        message = f"`{use.name}` is not defined."
    return SourceWarning(use.line, message, is_note=False)


def diff_from_previous(version: ScriptVersion) -> str:
    """A unified diff from the previous published version, or from nothing for the first."""
    published = version.script.versions.filter(published_at__isnull=False)
    earlier = published.filter(number__lt=version.number)
    previous = earlier.order_by("-number").first()
    lines = unified_diff(
        [] if previous is None else previous.source.splitlines(),
        version.source.splitlines(),
        old_name="nothing" if previous is None else f"version {previous.number}",
        new_name=f"version {version.number}",
    )
    return "\n".join(lines)
