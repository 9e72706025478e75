import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.api_keys import rotate_api_key
from accounts.graphql.programs.types import IssuedApiKey
from accounts.graphql.scope import find
from accounts.models import ApiKey
from core.graphql.resolving import domain_errors
from core.http.origin import origin_of


def resolve(
    root: None, info: GraphQLResolveInfo, id: str, overlap_seconds: int | None = 0
) -> IssuedApiKey:
    api_key = find(info, ApiKey, id)
    with domain_errors():
        issued = rotate_api_key(
            api_key,
            overlap_seconds=overlap_seconds or 0,
            origin=origin_of(info.context.request),
        )
    return IssuedApiKey(api_key=issued.api_key, secret=issued.secret)


field = graphene.Field(
    graphene.NonNull(IssuedApiKey),
    description="Gives a key a new secret, which is in this answer only. Sessions stay open.",
    args={
        "id": graphene.ID(required=True, description="The key's id."),
        "overlap_seconds": graphene.Int(
            default_value=0, description="How long the old secret stays good: 0 to 604800."
        ),
    },
    resolver=resolve,
)
