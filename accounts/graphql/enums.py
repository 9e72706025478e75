from enum import Enum

import graphene


class RoleEnum(graphene.Enum):
    """A user's role in an organisation."""

    class Meta:
        name = "Role"

    Member = "member"
    Administrator = "administrator"

    @property
    def description(self) -> str:
        return {
            "member": "Can log in by PIN.",
            "administrator": "Can also manage the organisation in the admin, if staff.",
        }[self.value]


class MembershipStatus(graphene.Enum):
    """Whether a user has agreed to be a member."""

    Invited = "invited"
    Accepted = "accepted"

    @property
    def description(self) -> str:
        return {
            "invited": "Not accepted yet; has no effect.",
            "accepted": "Is a member.",
        }[self.value]


def enum_value(member: Enum | None) -> str | None:
    """The value of an enum argument; ``None`` if it was not given."""
    return None if member is None else str(member.value)
