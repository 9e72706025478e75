import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import RoleEnum
from accounts.graphql.memberships import membership_type
from accounts.models import DeviceToken, Invitation, Membership, Organisation, User


class OrganisationType(DjangoObjectType):
    """An organisation that the user is a member of or invited to."""

    class Meta:
        name = "Organisation"
        model = Organisation
        skip_registry = True
        fields = ("name",)

    id = graphene.ID(required=True, description="The organisation's id.")


MembershipType = membership_type(OrganisationType)


class InvitationType(DjangoObjectType):
    """An organisation's offer of a membership, without effect until it is accepted."""

    class Meta:
        name = "Invitation"
        model = Invitation
        skip_registry = True
        fields = ("created_at", "expires_at")

    id = graphene.ID(required=True, description="The invitation's id.")
    organisation = graphene.Field(
        graphene.NonNull(OrganisationType), description="The organisation that invites."
    )
    role = graphene.Field(graphene.NonNull(RoleEnum), description="The role after acceptance.")


class UserType(DjangoObjectType):
    """A person."""

    class Meta:
        name = "User"
        model = User
        skip_registry = True
        fields = ("name", "is_active", "created_at")

    id = graphene.ID(required=True, description="The user's id.")
    email = graphene.String(required=True, description="The login name, in canonical form.")
    phone = graphene.String(description="The phone number in E.164 form, if any.")

    memberships = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(MembershipType))),
        description="The user's memberships and open invitations.",
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
    """A device that the user logged in on by PIN."""

    class Meta:
        name = "Device"
        model = DeviceToken
        skip_registry = True
        fields = ("label", "created_at", "last_used_at")

    token_id = graphene.ID(required=True, description="The id of the device's token.")
    device = graphene.ID(
        required=True, description="The UUID that the device generated for itself."
    )
    is_current = graphene.Boolean(
        required=True, description="Whether this request comes from the device."
    )

    @staticmethod
    def resolve_token_id(device_token: DeviceToken, info: GraphQLResolveInfo) -> str:
        return str(device_token.pk)

    @staticmethod
    def resolve_is_current(device_token: DeviceToken, info: GraphQLResolveInfo) -> bool:
        return bool(info.context.session.device_token_id == device_token.pk)


class CheckPinCode(graphene.ObjectType):
    """The result of checking a PIN; on success with the device's credential, shown once."""

    token = graphene.String(description="The secret: the password of POST /session.")
    token_id = graphene.ID(description="The public id: the uid of POST /session.")
    result = graphene.Boolean(required=True, description="Whether the PIN was right.")
