"""GraphQL mutations that say who calls a hook, and replay what was refused."""

from enum import Enum
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, find, scoped
from core.graphql.resolving import one
from core.http.origin import origin_of
from scripts_engine.flows.author import Author
from scripts_engine.flows.call_rules import set_sender
from scripts_engine.flows.refused_calls import replay_refused_call
from scripts_engine.flows.signing_secrets import (
    OVERLAP_SECONDS,
    delete_signing_secret,
    expect_handshake,
    set_signing_secret,
)
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.senders import HmacInput, SigningSecretType
from scripts_engine.graphql.types import HookType, RunType
from scripts_engine.models import Hook, RefusedCall, Run, SigningSecret

# The fields of ``HmacInput`` and the options that they set.
_OPTIONS = {
    "header": "header",
    "algorithm": "algorithm",
    "encoding": "encoding",
    "prefix": "prefix",
    "template": "template",
    "timestamp_header": "timestampHeader",
    "id_header": "idHeader",
    "secret_encoding": "secretEncoding",
}


def resolve_set_sender(
    root: None,
    info: GraphQLResolveInfo,
    hook: str,
    sender: str | None = None,
    hmac: dict[str, Any] | None = None,
) -> Hook:
    row = find(info, Hook, hook)
    options = None if hmac is None else {_OPTIONS[name]: _text(hmac[name]) for name in hmac}
    with script_errors():
        return set_sender(row, sender=sender, hmac=options, origin=origin_of(info.context.request))


def _text(value: Enum | str | None) -> str | None:
    return str(value.value) if isinstance(value, Enum) else value


set_sender_field = graphene.Field(
    graphene.NonNull(HookType),
    description="Sets who calls a hook; other calls are refused. What does not fit the new sender "
    "is reset. Null removes the sender with its secrets.",
    args={
        "hook": graphene.ID(required=True, description="The HookID."),
        "sender": graphene.String(description="A name out of `senders`."),
        "hmac": HmacInput(description="For the sender `hmac`, and for no other."),
    },
    resolver=resolve_set_sender,
)


def resolve_set_signing_secret(
    root: None,
    info: GraphQLResolveInfo,
    hook: str,
    value: str,
    overlap_seconds: int | None = OVERLAP_SECONDS,
) -> SigningSecret:
    row = find(info, Hook, hook)
    with script_errors():
        return set_signing_secret(
            row,
            value,
            overlap_seconds=OVERLAP_SECONDS if overlap_seconds is None else overlap_seconds,
            origin=origin_of(info.context.request),
        )


set_signing_secret_field = graphene.Field(
    graphene.NonNull(SigningSecretType),
    description="Sets the secret with which the sender signs. The current one ends after the "
    "overlap, an older one at once.",
    args={
        "hook": graphene.ID(required=True, description="The HookID."),
        "value": graphene.String(required=True, description="Never shown."),
        "overlap_seconds": graphene.Int(
            default_value=OVERLAP_SECONDS,
            description="How long the current secret stays accepted: 0 to 604800.",
        ),
    },
    resolver=resolve_set_signing_secret,
)


def resolve_delete_signing_secret(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    secret = one(scoped(info, SigningSecret).existing().live(), id)
    delete_signing_secret(secret, origin=origin_of(info.context.request))
    return True


delete_signing_secret_field = graphene.Boolean(
    required=True,
    description="Ends a signing secret at once. Calls that are signed with it are refused.",
    args={"id": graphene.ID(required=True, description="The signing secret's id.")},
    resolver=resolve_delete_signing_secret,
)


def resolve_expect_handshake(root: None, info: GraphQLResolveInfo, hook: str) -> Hook:
    row = find(info, Hook, hook)
    with script_errors():
        return expect_handshake(row, origin=origin_of(info.context.request))


expect_handshake_field = graphene.Field(
    graphene.NonNull(HookType),
    description="Lets the next handshake bring the signing secret, for 10 minutes.",
    args={"hook": graphene.ID(required=True, description="The HookID.")},
    resolver=resolve_expect_handshake,
)


def resolve_replay_refused_call(root: None, info: GraphQLResolveInfo, id: str) -> Run:
    row = find(info, RefusedCall, id)
    # A slot of the sandbox limits the run instead.
    with script_errors(), info.context.place_left_to_others():
        return replay_refused_call(
            row,
            origin=origin_of(info.context.request),
            by=Author(api_key=caller_key(info)),
        )


replay_refused_call_field = graphene.Field(
    graphene.NonNull(RunType),
    description="Runs the script for a refused call that matches the hook's rules now.",
    args={"id": graphene.ID(required=True, description="The refused call's id.")},
    resolver=resolve_replay_refused_call,
)
