from enum import Enum


def enum_value(member: Enum | None) -> str | None:
    """What a member of a graphene enum stands for; ``None`` where the argument was not given."""
    return None if member is None else str(member.value)
