import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.check_pin import check_pin
from accounts.graphql.people.types import CheckPinCode
from core.database.ids import parse_uuid
from core.graphql.problem import GraphQLProblem
from core.graphql.resolving import domain_errors, required
from core.http.origin import origin_of

MAX_HOST_LENGTH = 64


def resolve(
    root: None,
    info: GraphQLResolveInfo,
    email: str | None = None,
    pin: str | None = None,
    device: str | None = None,
    host: str | None = "",
) -> CheckPinCode:
    address, code = required(email, "email"), required(pin, "pin")
    device_id = parse_uuid(required(device, "device"))
    if device_id is None:
        raise GraphQLProblem("BAD_USER_INPUT", "The device must be a UUID.", field="device")
    label = host or ""
    if len(label) > MAX_HOST_LENGTH or not label.isprintable():
        raise GraphQLProblem(
            "BAD_USER_INPUT",
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


field = graphene.Field(
    CheckPinCode,
    description=(
        "Exchanges a PIN code for the device's credential. A wrong, expired, used or unknown "
        "code: result is false, whatever the reason. Five tries a login attempt."
    ),
    args={
        "email": graphene.String(description="The e-mail that the code was asked for. Required."),
        "pin": graphene.String(description="The 6 digits. Required."),
        "device": graphene.String(description="A UUID that the device made and keeps. Required."),
        "host": graphene.String(
            default_value="",
            description="The device's name, to tell it from others: ≤ 64 characters.",
        ),
    },
    resolver=resolve,
)
