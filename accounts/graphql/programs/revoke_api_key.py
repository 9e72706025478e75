import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.api_keys import revoke_api_key
from accounts.graphql.programs.types import ApiKeyType
from accounts.graphql.scope import find
from accounts.models import ApiKey
from core.http.origin import origin_of


def resolve(root: None, info: GraphQLResolveInfo, id: str) -> ApiKey:
    return revoke_api_key(find(info, ApiKey, id), origin=origin_of(info.context.request))


field = graphene.Field(
    graphene.NonNull(ApiKeyType),
    description="Ends an API key and its sessions, at once and for good.",
    args={
        "id": graphene.ID(required=True, description="The key's id."),
    },
    resolver=resolve,
)
