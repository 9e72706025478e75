"""Mutations of API keys."""

from datetime import datetime

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.api_keys import issue_api_key, revoke_api_key, rotate_api_key
from accounts.graphql.programs.types import ApiKeyType, IssuedApiKey
from accounts.graphql.scope import caller_organisation, find
from accounts.models import ApiKey
from core.graphql.resolving import as_utc, domain_errors
from core.http.origin import origin_of


def resolve_create_api_key(
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


create_api_key_field = graphene.Field(
    graphene.NonNull(IssuedApiKey),
    description="Creates an API key. Its secret is returned here only.",
    args={
        "name": graphene.String(required=True, description="The program that uses it."),
        "expires_at": graphene.DateTime(description="When the key expires. Omit for no expiry."),
        "allowed_networks": graphene.List(
            graphene.NonNull(graphene.String),
            description="Networks it may be used from, such as 192.0.2.0/24. Omit for any.",
        ),
    },
    resolver=resolve_create_api_key,
)


def resolve_rotate_api_key(
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


rotate_api_key_field = graphene.Field(
    graphene.NonNull(IssuedApiKey),
    description="Gives a key a new secret, returned here only. Sessions stay open.",
    args={
        "id": graphene.ID(required=True, description="The key's id."),
        "overlap_seconds": graphene.Int(
            default_value=0, description="How long the old secret stays valid: 0 to 604800."
        ),
    },
    resolver=resolve_rotate_api_key,
)


def resolve_revoke_api_key(root: None, info: GraphQLResolveInfo, id: str) -> ApiKey:
    return revoke_api_key(find(info, ApiKey, id), origin=origin_of(info.context.request))


revoke_api_key_field = graphene.Field(
    graphene.NonNull(ApiKeyType),
    description="Revokes an API key for good and ends its sessions immediately.",
    args={
        "id": graphene.ID(required=True, description="The key's id."),
    },
    resolver=resolve_revoke_api_key,
)
