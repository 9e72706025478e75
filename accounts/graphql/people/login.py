"""Logging in by PIN."""

from enum import Enum
from uuid import UUID

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.check_pin import check_pin
from accounts.flows.request_pin import request_pin
from accounts.graphql.enums import enum_value
from accounts.graphql.people.types import CheckPinCode
from accounts.messages.channels import SendVia
from core.database.ids import parse_uuid
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import domain_errors, required
from core.http.origin import origin_of

MAX_HOST_LENGTH = 64


class SendViaEnum(graphene.Enum):
    """How to send the code."""

    class Meta:
        name = "SendVia"

    Both = "both"
    Sms = "sms"
    Email = "email"

    @property
    def description(self) -> str:
        return {
            "both": "By e-mail and, if the user has a phone, by SMS.",
            "sms": "By SMS; by e-mail if the user has no phone.",
            "email": "By e-mail.",
        }[self.value]


def _device_id(device: str) -> UUID:
    device_id = parse_uuid(device)
    if device_id is None:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "The device must be a UUID.", field="device"
        )
    return device_id


def resolve_send_pin_code(
    root: None,
    info: GraphQLResolveInfo,
    email: str | None = None,
    send_via: Enum | None = None,
    device: str | None = None,
) -> bool:
    address = required(email, "email")
    channel = SendVia(required(enum_value(send_via), "sendVia"))
    device_id = None if device is None else _device_id(device)
    with domain_errors("email"):
        request_pin(address, channel, origin_of(info.context.request), device=device_id)
    return True


send_pin_code_field = graphene.Boolean(
    description=(
        "Sends a PIN code of 6 digits, valid for 10 minutes. Returns true for every well-formed "
        "e-mail, whether it has an account or not."
    ),
    args={
        "email": graphene.String(description="The user's e-mail. Required."),
        "send_via": SendViaEnum(description="How to send it. Required."),
        "device": graphene.String(
            description=(
                "The UUID of the device that asks, which alone can then use the code: others "
                "cannot use its tries up."
            )
        ),
    },
    resolver=resolve_send_pin_code,
)


def resolve_check_pin_code(
    root: None,
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
    with domain_errors():
        issued = check_pin(
            email=address,
            pin=code,
            device=device_id,
            label=label,
            origin=origin_of(info.context.request),
        )
    if issued is None:
        return CheckPinCode(result=False)
    return CheckPinCode(result=True, token=issued.token, token_id=issued.device_token.pk)


check_pin_code_field = graphene.Field(
    CheckPinCode,
    description=(
        "Exchanges a PIN code for the device's credential. For a wrong, expired, used or unknown "
        "code, result is false. A device has five tries."
    ),
    args={
        "email": graphene.String(
            description="The e-mail that the code was requested for. Required."
        ),
        "pin": graphene.String(description="The 6 digits. Required."),
        "device": graphene.String(
            description="A UUID that the device generates once and keeps. Required."
        ),
        "host": graphene.String(
            default_value="",
            description="The device's name, at most 64 characters.",
        ),
    },
    resolver=resolve_check_pin_code,
)
