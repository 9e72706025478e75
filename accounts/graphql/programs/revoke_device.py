import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.revoke_device import revoke_device
from accounts.flows.users import require_home
from accounts.graphql.scope import caller_organisation, find
from accounts.models import DeviceToken
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, token_id: str) -> bool:
    device_token = find(info, DeviceToken, token_id)
    with domain_errors():
        require_home(caller_organisation(info), device_token.user)
    revoke_device(device_token, origin=origin_of(info.context.request))
    return True


field = graphene.Boolean(
    required=True,
    description="Ends a device's credential and sessions, at once. FORBIDDEN unless home asks.",
    args={
        "token_id": graphene.ID(required=True, description="The id of the device's token."),
    },
    resolver=resolve,
)
