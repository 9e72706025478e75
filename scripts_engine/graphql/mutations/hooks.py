"""GraphQL mutations that create and change hooks."""

from enum import Enum
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import enum_value
from accounts.graphql.scope import find
from core.http.origin import origin_of
from scripts_engine.flows.hooks import IssuedHook as HookWithToken
from scripts_engine.flows.hooks import delete_hook, issue_hook, rotate_call_token, update_hook
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.senders import IdempotencyEnum, ReplyModeEnum
from scripts_engine.graphql.types import HookType, IssuedHook
from scripts_engine.models import Hook, Script


def as_issued_hook(issued: HookWithToken) -> IssuedHook:
    """The issued hook with its complete URL, which is shown only in this response."""
    hook, call_token = issued
    hook.url_just_issued = hook.url_with(call_token)  # type: ignore[attr-defined]
    return IssuedHook(hook=hook, call_token=call_token)


def _stored(rules: dict[str, Any]) -> dict[str, Any]:
    """The given rules, enums as their values."""
    return {
        name: enum_value(value) if isinstance(value, Enum) else value
        for name, value in rules.items()
    }


def resolve_create_hook(
    root: None, info: GraphQLResolveInfo, script: str, name: str | None = None, **rules: Any
) -> IssuedHook:
    row = find(info, Script, script)
    origin = origin_of(info.context.request)
    with script_errors():
        return as_issued_hook(issue_hook(row, name=name or "", origin=origin, **_stored(rules)))


def _queue_arguments() -> dict[str, graphene.Scalar]:
    return {
        "reply_mode": ReplyModeEnum(description="What callers get as the reply."),
        "accepted_status": graphene.Int(
            description="The status of the reply to a call that was queued: 200 to 299."
        ),
        "max_attempts": graphene.Int(description="How often a queued run is tried: 1 to 20."),
    }


create_hook_field = graphene.Field(
    graphene.NonNull(IssuedHook),
    description="Creates a webhook for a script. Its call token is shown only in this response.",
    args={
        "script": graphene.ID(required=True, description="The script's id."),
        "name": graphene.String(description="Describes the caller."),
        **_queue_arguments(),
    },
    resolver=resolve_create_hook,
)


def resolve_rotate_call_token(
    root: None, info: GraphQLResolveInfo, hook: str, overlap_seconds: int | None = 0
) -> IssuedHook:
    row = find(info, Hook, hook)
    with script_errors():
        issued = rotate_call_token(
            row,
            overlap_seconds=overlap_seconds or 0,
            origin=origin_of(info.context.request),
        )
    return as_issued_hook(issued)


rotate_call_token_field = graphene.Field(
    graphene.NonNull(IssuedHook),
    description="Gives a hook a new call token, which is shown only in this response.",
    args={
        "hook": graphene.ID(required=True, description="The HookID."),
        "overlap_seconds": graphene.Int(
            default_value=0, description="How long the old token stays valid: 0 to 604800."
        ),
    },
    resolver=resolve_rotate_call_token,
)


def resolve_update_hook(
    root: None,
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    enabled: bool | None = None,
    **rules: Any,
) -> Hook:
    given = {"name": name, "is_enabled": enabled}
    changes = {field: value for field, value in given.items() if value is not None}
    hook = find(info, Hook, id)
    with script_errors():
        origin = origin_of(info.context.request)
        return update_hook(hook, origin=origin, **changes, **_stored(rules))


update_hook_field = graphene.Field(
    graphene.NonNull(HookType),
    description="Changes the given fields of a hook. Null resets a limit to its default.",
    args={
        "id": graphene.ID(required=True, description="The HookID."),
        "name": graphene.String(description="Describes the caller."),
        "enabled": graphene.Boolean(
            description="If false, the hook answers as if it did not exist."
        ),
        "signed_url": graphene.String(
            description="The URL that the sender signs, if it is not the hook's own."
        ),
        "tolerance_seconds": graphene.Int(
            description="How old or early a signed time may be: 10 to 86400."
        ),
        "event_id_pointers": graphene.List(
            graphene.NonNull(graphene.String),
            description="Up to 3 JSON pointers (RFC 6901) to the event id in a signed body.",
        ),
        "allowed_networks": graphene.List(
            graphene.NonNull(graphene.String),
            description="Up to 64 networks of callers in CIDR notation; empty: all.",
        ),
        "methods": graphene.List(
            graphene.NonNull(graphene.String),
            description="The methods that run the script, out of GET and POST.",
        ),
        "max_body_bytes": graphene.Int(description="The largest payload: 1 to 1048576."),
        "idempotency": IdempotencyEnum(description="How a repeated delivery is recognised."),
        "idempotency_window_seconds": graphene.Int(
            description="How long a delivery is remembered: 1 to 604800."
        ),
        "calls_per_minute": graphene.Int(description="Verified calls a minute: 1 to 1000000."),
        "burst": graphene.Int(description="Calls that may come at once: 1 to 1000000."),
        "max_concurrent_runs": graphene.Int(description="Runs at the same time: 1 to 10000."),
        **_queue_arguments(),
    },
    resolver=resolve_update_hook,
)


def resolve_delete_hook(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    delete_hook(find(info, Hook, id), origin=origin_of(info.context.request))
    return True


delete_hook_field = graphene.Boolean(
    required=True,
    description="Deletes a hook, with immediate effect. Its runs stay readable.",
    args={
        "id": graphene.ID(required=True, description="The HookID."),
    },
    resolver=resolve_delete_hook,
)
