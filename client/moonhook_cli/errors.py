"""The errors of commands, each with its exit code and what to do next."""

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    DIFFERS = 2
    NOT_ALLOWED = 3
    UNREACHABLE = 4


class CommandError(Exception):
    """Ends the command with ``exit_code``; ``advice`` says what to do next."""

    exit_code = Exit.FAILED

    def __init__(self, message: str, advice: str, code: str = "FAILED") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.code = code


class NotAllowedError(CommandError):
    exit_code = Exit.NOT_ALLOWED


class UnreachableError(CommandError):
    exit_code = Exit.UNREACHABLE


class DiffersError(CommandError):
    exit_code = Exit.DIFFERS
