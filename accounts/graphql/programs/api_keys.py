"""Mutations of API keys."""

from datetime import datetime
from enum import Enum
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.flows.api_keys import issue_api_key, revoke_api_key, rotate_api_key, update_api_key
from accounts.graphql.programs.types import ApiKeyType, IssuedApiKey
from accounts.graphql.scope import caller_maker, caller_organisation, find
from accounts.graphql.shared import ScopeEnum
from accounts.models import ApiKey
from core.graphql.mutation import mutation
from core.graphql.resolving import as_utc, caller_origin

_SCOPES = graphene.List(
    graphene.NonNull(ScopeEnum),
    description="What it may do, at most what the caller's key may. Omit for the caller's scopes.",
)


@mutation(
    IssuedApiKey,
    "Creates an API key, with at most the caller's scopes, expiry and networks. What is "
    "omitted is the caller's. Its secret is returned here only.",
    name=graphene.String(required=True, description="The program that uses it."),
    scopes=_SCOPES,
    expires_at=graphene.DateTime(
        description="When the key expires. Omit for the caller's expiry, if any."
    ),
    allowed_networks=graphene.List(
        graphene.NonNull(graphene.String),
        description=(
            "Networks it may be used from, such as 192.0.2.0/24. Omit for the caller's; empty "
            "for any."
        ),
    ),
)
def create_api_key_field(
    info: GraphQLResolveInfo,
    name: str,
    scopes: list[Enum] | None = None,
    expires_at: datetime | None = None,
    allowed_networks: list[str] | None = None,
) -> IssuedApiKey:
    issued = issue_api_key(
        caller_organisation(info),
        name=name,
        expires_at=None if expires_at is None else as_utc(expires_at, "expiresAt"),
        scopes=_values(scopes),
        allowed_networks=allowed_networks,
        origin=caller_origin(info),
        maker=caller_maker(info),
    )
    return IssuedApiKey(api_key=issued.api_key, secret=issued.secret)


def _values(scopes: list[Enum] | None) -> list[str] | None:
    return None if scopes is None else [str(scope.value) for scope in scopes]


@mutation(
    ApiKeyType,
    "Changes the given fields of an API key, which count from its next request on. FORBIDDEN "
    "unless the caller's key has all that it had and gets. Keys that a program created with "
    "this key, as its approved login, lose what it loses.",
    id=graphene.ID(required=True, description="The key's id."),
    name=graphene.String(description="The program that uses it."),
    scopes=graphene.List(graphene.NonNull(ScopeEnum), description="What it may do."),
    expires_at=graphene.DateTime(description="When the key expires. Null for no expiry."),
    allowed_networks=graphene.List(
        graphene.NonNull(graphene.String),
        description="Networks it may be used from. Null or empty for any.",
    ),
)
def update_api_key_field(
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    scopes: list[Enum] | None = None,
    **limits: Any,
) -> ApiKey:
    api_key = find(info, ApiKey, id)
    if limits.get("expires_at") is not None:
        limits["expires_at"] = as_utc(limits["expires_at"], "expiresAt")
    if limits.get("allowed_networks", []) is None:
        limits["allowed_networks"] = []
    return update_api_key(
        api_key,
        name=name,
        scopes=_values(scopes),
        origin=caller_origin(info),
        maker=caller_maker(info),
        **limits,
    )


@mutation(
    IssuedApiKey,
    "Gives a key a new secret, returned here only. Sessions stay open. FORBIDDEN for a key "
    "with more scopes, a later expiry or wider networks than the caller's.",
    id=graphene.ID(required=True, description="The key's id."),
    overlap_seconds=graphene.Int(
        default_value=0, description="How long the old secret stays valid: 0 to 604800."
    ),
)
def rotate_api_key_field(
    info: GraphQLResolveInfo, id: str, overlap_seconds: int | None = 0
) -> IssuedApiKey:
    api_key = find(info, ApiKey, id)
    issued = rotate_api_key(
        api_key,
        overlap_seconds=overlap_seconds or 0,
        origin=caller_origin(info),
        maker=caller_maker(info),
    )
    return IssuedApiKey(api_key=issued.api_key, secret=issued.secret)


@mutation(
    ApiKeyType,
    "Revokes an API key for good and ends its sessions immediately. If a person approved it as a "
    "program's login, so it does with the keys that it created, which `keysCreated` names.",
    id=graphene.ID(required=True, description="The key's id."),
)
def revoke_api_key_field(info: GraphQLResolveInfo, id: str) -> ApiKey:
    return revoke_api_key(find(info, ApiKey, id), origin=caller_origin(info))
