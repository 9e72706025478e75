from datetime import datetime

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.api_keys import issue_api_key
from accounts.graphql.programs.types import IssuedApiKey
from accounts.graphql.scope import caller_organisation
from core.graphql.resolving import as_utc, domain_errors
from core.http.origin import origin_of


def resolve(
    root: None,
    info: GraphQLResolveInfo,
    name: str,
    expires_at: datetime | None = None,
    allowed_networks: list[str] | None = None,
) -> IssuedApiKey:
    with domain_errors():
        issued = issue_api_key(
            caller_organisation(info),
            name=name,
            expires_at=None if expires_at is None else as_utc(expires_at, "expiresAt"),
            allowed_networks=allowed_networks or (),
            origin=origin_of(info.context.request),
        )
    return IssuedApiKey(api_key=issued.api_key, secret=issued.secret)


field = graphene.Field(
    graphene.NonNull(IssuedApiKey),
    description="Issues an API key. Its secret is in this answer only.",
    args={
        "name": graphene.String(required=True, description="What uses it."),
        "expires_at": graphene.DateTime(description="When it ends by itself; never, without."),
        "allowed_networks": graphene.List(
            graphene.NonNull(graphene.String),
            description="Where it may be used from, like 192.0.2.0/24; anywhere, without.",
        ),
    },
    resolver=resolve,
)
