"""The GraphQL type of memberships and open invitations, for both schemas."""

import graphene
from django.db.models import Model
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import MembershipStatus, RoleEnum
from accounts.models import Invitation, Organisation


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
