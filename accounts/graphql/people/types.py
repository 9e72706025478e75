import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import RoleEnum
from accounts.graphql.memberships import membership_type
from accounts.models import DeviceToken, Invitation, Membership, Organisation, User


class OrganisationType(DjangoObjectType):
    """An organisation that the user is a member of, or is invited to."""

    class Meta:
        name = "Organisation"
        model = Organisation
        skip_registry = True
        fields = ("name",)

    id = graphene.ID(required=True, description="The organisation's id.")


MembershipType = membership_type(OrganisationType)


class InvitationType(DjangoObjectType):
    """An organisation's offer of a membership: gives and takes nothing until it is accepted."""

    class Meta:
        name = "Invitation"
        model = Invitation
        skip_registry = True
        fields = ("created_at", "expires_at")

    id = graphene.ID(required=True, description="Accept or decline it by this id.")
    organisation = graphene.Field(graphene.NonNull(OrganisationType), description="Whose it is.")
    role = graphene.Field(
        graphene.NonNull(RoleEnum), description="The place in the organisation once accepted."
    )


class UserType(DjangoObjectType):
    """A person."""

    class Meta:
        name = "User"
        model = User
        skip_registry = True
        fields = ("name", "is_active", "created_at")

    id = graphene.ID(required=True, description="The user's id.")
    email = graphene.String(required=True, description="The login name, in canonical form.")
    phone = graphene.String(description="In E.164 form, if there is one.")

    memberships = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(MembershipType))),
        description="The organisations that the user is a member of, or is invited to.",
    )

    @staticmethod
    def resolve_memberships(user: User, info: GraphQLResolveInfo) -> list[Membership | Invitation]:
        accepted = user.memberships.select_related("organisation")
        open_ones = user.invitations.answerable().select_related("organisation")
        return [*accepted, *open_ones]

    @staticmethod
    def resolve_phone(user: User, info: GraphQLResolveInfo) -> str | None:
        return user.phone or None


class DeviceType(DjangoObjectType):
    """A device that its user logged in on by PIN."""

    class Meta:
        name = "Device"
        model = DeviceToken
        skip_registry = True
        fields = ("label", "created_at", "last_used_at")

    token_id = graphene.ID(required=True, description="The id of the device's token.")
    device = graphene.ID(required=True, description="The id the device gave itself: a UUID.")
    is_current = graphene.Boolean(
        required=True, description="Whether this request comes from this device."
    )

    @staticmethod
    def resolve_token_id(device_token: DeviceToken, info: GraphQLResolveInfo) -> str:
        return str(device_token.pk)

    @staticmethod
    def resolve_is_current(device_token: DeviceToken, info: GraphQLResolveInfo) -> bool:
        return bool(info.context.session.device_token_id == device_token.pk)


class CheckPinCode(graphene.ObjectType):
    """The outcome of a PIN: on success the device's credential, shown this once."""

    token = graphene.String(description="The secret: POST /session takes it as password.")
    token_id = graphene.ID(description="Its public id: POST /session takes it as uid.")
    result = graphene.Boolean(required=True, description="Whether the PIN was right.")
