from enum import Enum

import graphene


class RoleEnum(graphene.Enum):
    """A user's place in an organisation."""

    class Meta:
        name = "Role"

    Member = "member"
    Administrator = "administrator"

    @property
    def description(self) -> str:
        return {
            "member": "Logs in by PIN.",
            "administrator": "Also manages the organisation in the admin.",
        }[self.value]


class MembershipStatus(graphene.Enum):
    """Whether a user has agreed to be a member."""

    Invited = "invited"
    Accepted = "accepted"

    @property
    def description(self) -> str:
        return {
            "invited": "Not answered yet: gives and takes nothing.",
            "accepted": "A member.",
        }[self.value]


def enum_value(member: Enum | None) -> str | None:
    """What a member of a graphene enum stands for; ``None`` where the argument was not given."""
    return None if member is None else str(member.value)
