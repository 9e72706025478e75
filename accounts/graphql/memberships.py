"""Memberships as both schemas show them: accepted ones, and invitations as those not answered."""

import graphene
from django.db.models import Model
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import MembershipStatus, RoleEnum
from accounts.models import Invitation, Organisation


def membership_type(organisation: type[graphene.ObjectType]) -> type[graphene.ObjectType]:
    """The type for a schema whose organisations are of that type."""

    class MembershipType(graphene.ObjectType):
        """A user's place in an organisation, or an invitation to it."""

        class Meta:
            name = "Membership"

        organisation_field = graphene.Field(
            graphene.NonNull(organisation), name="organisation", description="Where."
        )
        role = graphene.Field(
            graphene.NonNull(RoleEnum),
            description="The place in the organisation; of an invited user, once they accept.",
        )
        status = graphene.Field(
            graphene.NonNull(MembershipStatus), description="Whether the user has accepted it."
        )
        created_at = graphene.DateTime(
            required=True, description="Since when they are a member, or when they were invited."
        )
        expires_at = graphene.DateTime(
            description="When the invitation ends; null once it is accepted."
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
