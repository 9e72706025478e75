from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.request_pin import request_pin
from accounts.graphql.enums import enum_value
from accounts.messages.channels import SendVia
from core.graphql.resolving import domain_errors, required
from core.http.origin import origin_of


class SendViaEnum(graphene.Enum):
    """How the code is to reach the user."""

    class Meta:
        name = "SendVia"

    Both = "both"
    Sms = "sms"
    Email = "email"

    @property
    def description(self) -> str:
        return {
            "both": "By every way that the user has.",
            "sms": "By SMS; by e-mail where the user has no phone.",
            "email": "By e-mail.",
        }[self.value]


def resolve(
    root: None, info: GraphQLResolveInfo, email: str | None = None, send_via: Enum | None = None
) -> bool:
    address = required(email, "email")
    channel = SendVia(required(enum_value(send_via), "sendVia"))
    with domain_errors("email"):
        request_pin(address, channel, origin_of(info.context.request))
    return True


field = graphene.Boolean(
    description=(
        "Sends a PIN code of 6 digits, valid for 10 minutes. Answers true for every well-formed "
        "e-mail, whether anybody has it or not."
    ),
    args={
        "email": graphene.String(description="The user's e-mail. Required."),
        "send_via": SendViaEnum(description="How to send it. Required."),
    },
    resolver=resolve,
)
