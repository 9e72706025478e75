"""/user/graphql: logging in by PIN, and a person's own account."""

from enum import Enum
from typing import Protocol
from uuid import UUID

import graphene
from django.db.models import QuerySet
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.flows.check_pin import check_pin
from accounts.flows.organisations import accept_invitation, decline_invitation
from accounts.flows.revoke_device import revoke_device
from accounts.flows.send_pin import request_pin
from accounts.graphql.shared import RoleEnum, enum_value, membership_type
from accounts.messages.channels import SendVia
from accounts.models import DeviceToken, Invitation, Membership, Organisation, User
from core.database.ids import parse_uuid
from core.graphql.enums import described_enum
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import caller_origin, domain_errors, one, required

MAX_HOST_LENGTH = 64
_ARGUMENTS = {"id": graphene.ID(required=True, description="The invitation's id.")}


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


SendViaEnum = described_enum(
    "SendVia",
    "How to send the code.",
    {
        SendVia.BOTH: "By e-mail and, if the user has a phone, by SMS.",
        SendVia.SMS: "By SMS; by e-mail if the user has no phone.",
        SendVia.EMAIL: "By e-mail.",
    },
)


def _device_id(device: str) -> UUID:
    device_id = parse_uuid(device)
    if device_id is None:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "The device must be a UUID.", field="device"
        )
    return device_id


@mutation(
    graphene.Boolean,
    "Sends a PIN code of 6 digits, valid for 10 minutes. Returns true for every well-formed "
    "e-mail, whether it has an account or not.",
    required=False,
    email=graphene.String(description="The user's e-mail. Required."),
    send_via=SendViaEnum(description="How to send it. Required."),
    device=graphene.String(
        description=(
            "The UUID of the device that asks, which alone can then use the code: others "
            "cannot use its tries up."
        )
    ),
)
def send_pin_code_field(
    info: GraphQLResolveInfo,
    email: str | None = None,
    send_via: Enum | None = None,
    device: str | None = None,
) -> bool:
    address = required(email, "email")
    channel = SendVia(required(enum_value(send_via), "sendVia"))
    device_id = None if device is None else _device_id(device)
    with domain_errors("email"):
        request_pin(address, channel, caller_origin(info), device=device_id)
    return True


@mutation(
    CheckPinCode,
    "Exchanges a PIN code for the device's credential. For a wrong, expired, used or unknown "
    "code, result is false. A device has five tries.",
    required=False,
    email=graphene.String(description="The e-mail that the code was requested for. Required."),
    pin=graphene.String(description="The 6 digits. Required."),
    device=graphene.String(
        description="A UUID that the device generates once and keeps. Required."
    ),
    host=graphene.String(
        default_value="",
        description="The device's name, at most 64 characters.",
    ),
)
def check_pin_code_field(
    info: GraphQLResolveInfo,
    email: str | None = None,
    pin: str | None = None,
    device: str | None = None,
    host: str | None = "",
) -> CheckPinCode:
    address, code = required(email, "email"), required(pin, "pin")
    device_id = _device_id(required(device, "device"))
    label = host or ""
    if len(label) > MAX_HOST_LENGTH or not label.isprintable():
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT,
            f"The host may have at most {MAX_HOST_LENGTH} printable characters.",
            field="host",
        )
    issued = check_pin(
        email=address,
        pin=code,
        device=device_id,
        label=label,
        origin=caller_origin(info),
    )
    if issued is None:
        return CheckPinCode(result=False)
    return CheckPinCode(result=True, token=issued.token, token_id=issued.device_token.pk)


class PersonSession(Protocol):
    """A session that /user/graphql accepts."""

    user: User


def caller(info: GraphQLResolveInfo) -> User:
    session: PersonSession = info.context.session
    return session.user


def devices_of_caller(info: GraphQLResolveInfo) -> QuerySet[DeviceToken]:
    return caller(info).device_tokens.filter(revoked_at__isnull=True)


def invitations_of_caller(info: GraphQLResolveInfo) -> QuerySet[Invitation]:
    return caller(info).invitations.answerable().select_related("organisation")


class AccountsQuery(graphene.ObjectType):
    me = graphene.Field(
        graphene.NonNull(UserType),
        description="The user of this session.",
        resolver=lambda root, info: caller(info),
    )
    devices = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(DeviceType))),
        description="The devices that the user is logged in on.",
        resolver=lambda root, info: devices_of_caller(info),
    )
    invitations = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(InvitationType))),
        description="Open invitations of the user, newest first.",
        resolver=lambda root, info: invitations_of_caller(info),
    )


@mutation(
    graphene.Boolean,
    "Makes the user a member of the organisation. NOT_FOUND for an expired invitation.",
    **_ARGUMENTS,
)
def accept_invitation_field(info: GraphQLResolveInfo, id: str) -> bool:
    invitation = one(invitations_of_caller(info), id)
    accept_invitation(caller(info), invitation.pk, origin=caller_origin(info))
    return True


@mutation(
    graphene.Boolean, "Declines an invitation. The organisation may invite again.", **_ARGUMENTS
)
def decline_invitation_field(info: GraphQLResolveInfo, id: str) -> bool:
    invitation = one(invitations_of_caller(info), id)
    decline_invitation(caller(info), invitation.pk)
    return True


@mutation(
    graphene.Boolean,
    "Revokes a device's credential and ends its sessions immediately.",
    token_id=graphene.ID(required=True, description="The tokenId of one of the user's devices."),
)
def revoke_device_field(info: GraphQLResolveInfo, token_id: str) -> bool:
    revoke_device(one(devices_of_caller(info), token_id), origin=caller_origin(info))
    return True
