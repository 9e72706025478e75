"""Warns of uses of globals in a source that look like mistakes. Warnings never stop a save."""

from typing import NamedTuple

from django.core.exceptions import ValidationError

from accounts.models import Organisation
from scripts_engine.flows.source import validate_source_text
from scripts_engine.sandbox.contract import GlobalUse, GlobalUseKind
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_pool


class SourceWarning(NamedTuple):
    line: int
    """Counts from 1."""
    message: str
    is_note: bool
    """Whether the source works as written, but could be clearer."""


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
