import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.revoke_device import revoke_device
from accounts.graphql.not_found import not_found
from accounts.graphql.people.me import devices_of_caller
from accounts.ids import parse_uuid


def resolve(root: None, info: GraphQLResolveInfo, token_id: str) -> bool:
    device_token = devices_of_caller(info).filter(pk=parse_uuid(token_id)).first()
    if device_token is None:
        raise not_found()
    revoke_device(device_token)
    return True


field = graphene.Boolean(
    required=True,
    description="Ends a device's credential and its sessions, at once.",
    args={
        "token_id": graphene.ID(
            required=True, description="The tokenId of one of the own devices."
        ),
    },
    resolver=resolve,
)
