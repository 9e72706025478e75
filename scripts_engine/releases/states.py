"""Reads the values of states, which may come from a client, and spells enums as GraphQL does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import TextChoices

from core.plain_text import is_encodable
from scripts_engine.releases.kinds import State

_WANTED = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}


def value_in(state: State, name: str, kind: type) -> Any:
    """The value; ``None`` if it is null or left out. Raises ``ValidationError`` by its name."""
    value = state.get(name)
    if value is not None and type(value) is not kind:
        raise _invalid(name, f"Enter {_WANTED[kind]}.")
    if isinstance(value, str) and ("\0" in value or not is_encodable(value)):
        raise _invalid(name, "Remove the control characters.")
    return value


def choice_in(state: State, name: str, choices: type[TextChoices]) -> str | None:
    """The stored value of an enum, like ``value_in``."""
    shown = value_in(state, name, str)
    if shown is None:
        return None
    for choice in choices:
        if member_name(choice) == shown:
            return str(choice.value)
    raise _invalid(name, f"Choose {', '.join(map(member_name, choices))}.")


def member_name(choice: TextChoices) -> str:
    """``EventId`` for ``EVENT_ID``."""
    return choice.name.title().replace("_", "")


def _invalid(name: str, message: str) -> ValidationError:
    return ValidationError({name: ValidationError(message, code="invalid")})


@contextmanager
def naming(kind: str, name: object) -> Iterator[None]:
    """Names the object in what is wrong with it."""
    try:
        yield
    except ValidationError as problem:
        raise about(kind, name, problem) from None


def about(kind: str, name: object, problem: ValidationError) -> ValidationError:
    return ValidationError([f"{kind} “{name}”: {message}" for message in problem.messages])
