"""Checks a script's source, and compares versions."""

from django.core.exceptions import ValidationError

from accounts.models import Organisation
from core.plain_text import validate_plain_text
from scripts_engine.errors import SourceError
from scripts_engine.line_diff import unified_diff
from scripts_engine.models import ScriptVersion
from scripts_engine.sandbox.limits import MAX_SOURCE_BYTES
from scripts_engine.sandbox_pool import sandbox_pool


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


def diff_from_previous(version: ScriptVersion) -> str:
    """A unified diff from the previous version, or from nothing for the first."""
    earlier = version.script.versions.filter(number__lt=version.number)
    previous = earlier.order_by("-number").first()
    lines = unified_diff(
        [] if previous is None else previous.source.splitlines(),
        version.source.splitlines(),
        old_name="nothing" if previous is None else f"version {previous.number}",
        new_name=f"version {version.number}",
    )
    return "\n".join(lines)
