"""Types that both schemas share: enumerations, memberships and open invitations."""

from enum import Enum

import graphene
from django.db.models import Model
from graphql import GraphQLResolveInfo

from accounts.models import Invitation, Organisation
from accounts.scopes import MEANINGS, Scope, names_of, scopes_of_role


class RoleEnum(graphene.Enum):
    """A user's role in an organisation."""

    class Meta:
        name = "Role"

    Member = "member"
    Viewer = "viewer"
    Operator = "operator"
    Author = "author"
    Administrator = "administrator"

    @property
    def description(self) -> str:
        if self.value == "member":
            return "Can log in by PIN; has no scope."
        held = names_of(scopes_of_role(self.value))
        return f"In the admin, if staff: {held}."


def _meaning_of_scope(member: Enum | None) -> str:
    return "What an API key or a role opens." if member is None else MEANINGS[Scope(member.value)]


ScopeEnum = graphene.Enum(
    "Scope", [(scope.value, scope.value) for scope in Scope], description=_meaning_of_scope
)


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


def expected_revision() -> graphene.Argument:
    """The argument of mutations that change a row with a revision."""
    return graphene.Argument(
        graphene.Int,
        description="The `revision` that was read; `CONFLICT` if it has changed since. Null: any.",
    )


def enum_value(member: Enum | None) -> str | None:
    """The value of an enum argument; ``None`` if it was not given."""
    return None if member is None else str(member.value)


def membership_type(organisation: type[graphene.ObjectType]) -> type[graphene.ObjectType]:
    """Builds the type for a schema with its own type of organisations."""

    class MembershipType(graphene.ObjectType):
        """A user's membership in an organisation, or an invitation to it."""

        class Meta:
            name = "Membership"

        organisation_field = graphene.Field(
            graphene.NonNull(organisation), name="organisation", description="The organisation."
        )
        role = graphene.Field(
            graphene.NonNull(RoleEnum),
            description="The role; for an invited user, the role after acceptance.",
        )
        status = graphene.Field(
            graphene.NonNull(MembershipStatus), description="Whether the user has accepted it."
        )
        created_at = graphene.DateTime(
            required=True, description="When the membership began, or when the user was invited."
        )
        expires_at = graphene.DateTime(
            description="When the invitation expires; null once it is accepted."
        )

        @staticmethod
        def resolve_organisation_field(row: Model, info: GraphQLResolveInfo) -> Organisation:
            place: Organisation = row.organisation  # type: ignore[attr-defined]
            return place

        @staticmethod
        def resolve_status(row: Model, info: GraphQLResolveInfo) -> str:
            is_invited = isinstance(row, Invitation)
            return "invited" if is_invited else "accepted"

        @staticmethod
        def resolve_expires_at(row: Model, info: GraphQLResolveInfo) -> object:
            return row.expires_at if isinstance(row, Invitation) else None

    return MembershipType
