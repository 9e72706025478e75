import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.revoke_device import revoke_device
from accounts.graphql.people.me import devices_of_caller
from core.graphql.resolving import one
from core.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, token_id: str) -> bool:
    revoke_device(one(devices_of_caller(info), token_id), origin=origin_of(info.context.request))
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
