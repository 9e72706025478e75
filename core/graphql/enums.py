"""Enumerations of the schema, from those of the domain."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import graphene


def described_enum(name: str, description: str, texts: Mapping[Any, str]) -> Any:
    """An enumeration of the members that ``texts`` describes, as ``TimedOut`` for ``TIMED_OUT``."""
    by_value = {member.value: text for member, text in texts.items()}

    def describe(member: Enum | None) -> str:
        return description if member is None else by_value[member.value]

    members = [(member.name.title().replace("_", ""), member.value) for member in texts]
    return graphene.Enum(name, members, description=describe)
