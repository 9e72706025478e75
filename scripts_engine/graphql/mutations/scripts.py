"""GraphQL mutations that change and run scripts."""

from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, caller_organisation, find
from core.http.origin import origin_of
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import (
    create_script,
    delete_script,
    restore_script_version,
    update_script,
)
from scripts_engine.flows.try_script import try_script
from scripts_engine.graphql.payload import event_of
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import RunType, ScriptType
from scripts_engine.models import Run, Script, ScriptVersion, Trigger


def resolve_create_script(root: None, info: GraphQLResolveInfo, name: str, source: str) -> Script:
    author = Author(api_key=caller_key(info))
    with script_errors():
        return create_script(
            caller_organisation(info),
            name=name,
            source=source,
            author=author,
            origin=origin_of(info.context.request),
        )


create_script_field = graphene.Field(
    graphene.NonNull(ScriptType),
    description="Creates a script. A source that does not compile is refused, with the line.",
    args={
        "name": graphene.String(required=True, description="The script's name."),
        "source": graphene.String(required=True, description="Lua 5.4; at most 64 KiB."),
    },
    resolver=resolve_create_script,
)


def resolve_update_script(
    root: None,
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    source: str | None = None,
    timeout_seconds: float | None = None,
    enabled: bool | None = None,
    **limits: int | None,
) -> Script:
    given = {"name": name, "timeout_seconds": timeout_seconds, "is_enabled": enabled}
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    changes |= limits
    script = find(info, Script, id)
    with script_errors():
        return update_script(
            script,
            author=Author(api_key=caller_key(info)),
            source=source,
            origin=origin_of(info.context.request),
            **changes,
        )


update_script_field = graphene.Field(
    graphene.NonNull(ScriptType),
    description="Changes the given fields of a script, all or none. A new source adds a version.",
    args={
        "id": graphene.ID(required=True, description="The script's id."),
        "name": graphene.String(description="The script's name."),
        "source": graphene.String(description="Lua 5.4; at most 64 KiB."),
        "timeout_seconds": graphene.Float(description="Longer runs are stopped. Maximum 25."),
        "enabled": graphene.Boolean(description="Whether hooks run the script."),
        "max_concurrent_runs": graphene.Int(
            description="Runs at the same time, over all hooks: 1 to 10000. Null: unlimited."
        ),
    },
    resolver=resolve_update_script,
)


def resolve_restore_script_version(root: None, info: GraphQLResolveInfo, version: str) -> Script:
    row = find(info, ScriptVersion, version)
    with script_errors():
        author = Author(api_key=caller_key(info))
        return restore_script_version(row, author=author, origin=origin_of(info.context.request))


restore_script_version_field = graphene.Field(
    graphene.NonNull(ScriptType),
    description="Saves the source of an earlier version as a new version.",
    args={"version": graphene.ID(required=True, description="The version's id.")},
    resolver=resolve_restore_script_version,
)


def resolve_delete_script(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    delete_script(find(info, Script, id), origin=origin_of(info.context.request))
    return True


delete_script_field = graphene.Boolean(
    required=True,
    description="Deletes a script, with immediate effect on its hooks. Its runs stay readable.",
    args={
        "id": graphene.ID(required=True, description="The script's id."),
    },
    resolver=resolve_delete_script,
)


def resolve_run_script(
    root: None, info: GraphQLResolveInfo, script: str, body: str | None = ""
) -> Run:
    row = find(info, Script, script)
    event = event_of(info, body)
    # A slot of the sandbox limits the run instead.
    with script_errors(), info.context.place_left_to_others():
        return try_script(
            row,
            event=event,
            author=Author(api_key=caller_key(info)),
            trigger=Trigger.ADMIN_GRAPHQL,
        )


run_script_field = graphene.Field(
    graphene.NonNull(RunType),
    description="Runs a script's current version and returns the run.",
    args={
        "script": graphene.ID(required=True, description="The script's id."),
        "body": graphene.String(default_value="", description="The payload."),
    },
    resolver=resolve_run_script,
)
