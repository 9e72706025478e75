"""GraphQL mutations that create and change hooks."""

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from core.http.origin import origin_of
from scripts_engine.flows.hooks import IssuedHook as HookWithToken
from scripts_engine.flows.hooks import delete_hook, issue_hook, rotate_call_token, update_hook
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import HookType, IssuedHook
from scripts_engine.models import Hook, Script


def as_issued_hook(issued: HookWithToken) -> IssuedHook:
    """The issued hook with its complete URL, which is shown only in this response."""
    hook, call_token = issued
    hook.url_just_issued = hook.url_with(call_token)  # type: ignore[attr-defined]
    return IssuedHook(hook=hook, call_token=call_token)


def resolve_create_hook(
    root: None, info: GraphQLResolveInfo, script: str, name: str | None = None
) -> IssuedHook:
    row = find(info, Script, script)
    with script_errors():
        return as_issued_hook(
            issue_hook(row, name=name or "", origin=origin_of(info.context.request))
        )


create_hook_field = graphene.Field(
    graphene.NonNull(IssuedHook),
    description="Creates a webhook for a script. Its call token is shown only in this response.",
    args={
        "script": graphene.ID(required=True, description="The script's id."),
        "name": graphene.String(description="Describes the caller."),
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
) -> Hook:
    given = {"name": name, "is_enabled": enabled}
    changes = {field: value for field, value in given.items() if value is not None}
    hook = find(info, Hook, id)
    with script_errors():
        return update_hook(hook, origin=origin_of(info.context.request), **changes)


update_hook_field = graphene.Field(
    graphene.NonNull(HookType),
    description="Changes the given fields of a hook.",
    args={
        "id": graphene.ID(required=True, description="The HookID."),
        "name": graphene.String(description="Describes the caller."),
        "enabled": graphene.Boolean(
            description="If false, the hook answers as if it did not exist."
        ),
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
