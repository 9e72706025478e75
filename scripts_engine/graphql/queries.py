"""GraphQL queries of scripts, hooks, runs and secrets."""

from datetime import datetime
from enum import Enum
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import enum_value
from accounts.graphql.scope import find, find_even_deleted, scoped
from core.graphql.connection import Page, connection_field, page_of
from core.graphql.resolving import as_utc
from core.plain_text import storable
from scripts_engine.graphql.types import (
    HookConnection,
    RunConnection,
    RunStatusEnum,
    RunType,
    ScriptConnection,
    ScriptType,
    SecretType,
)
from scripts_engine.models import Hook, Run, Script, Secret

# Loaded per run, only if the document selects them, because a page of runs would be large.
_LONG_COLUMNS_OF_RUNS = (
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "host_calls",
    "unsaved_source",
)


class ScriptsQuery(graphene.ObjectType):
    scripts = connection_field(
        ScriptConnection,
        "The scripts of the organisation.",
        name=graphene.String(description="Only scripts whose name contains this text."),
    )
    script = graphene.Field(
        ScriptType,
        description="One script.",
        id=graphene.ID(required=True, description="The script's id."),
    )
    hooks = connection_field(
        HookConnection,
        "The hooks of the organisation's scripts.",
        script=graphene.ID(description="Only hooks of this script."),
    )
    runs = connection_field(
        RunConnection,
        "The runs of the organisation's scripts, including deleted scripts.",
        script=graphene.ID(description="Only runs of this script."),
        hook=graphene.ID(description="Only runs by this hook."),
        status=RunStatusEnum(description="Only runs with this status."),
        since=graphene.DateTime(description="Only runs that started at this time or later."),
        until=graphene.DateTime(description="Only runs that started before this time."),
    )
    run = graphene.Field(
        RunType,
        description="One run.",
        id=graphene.ID(required=True, description="The run's id."),
    )
    secrets = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(SecretType))),
        description="The names of the organisation's secrets; never their values.",
    )

    @staticmethod
    def resolve_scripts(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        name: str | None = None,
    ) -> Page:
        rows = scoped(info, Script).select_related("current_version")
        if name is not None:
            rows = rows.filter(name__icontains=storable(name))
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_script(root: None, info: GraphQLResolveInfo, id: str) -> Script:
        return find(info, Script, id)

    @staticmethod
    def resolve_hooks(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        script: str | None = None,
    ) -> Page:
        rows = scoped(info, Hook).select_related("script__current_version")
        if script is not None:
            rows = rows.filter(script=find(info, Script, script))
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_runs(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        script: str | None = None,
        hook: str | None = None,
        status: Enum | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page:
        rows = scoped(info, Run).select_related("script__current_version", "script_version", "hook")
        rows = rows.defer(*_LONG_COLUMNS_OF_RUNS)
        if script is not None:
            rows = rows.filter(script=find_even_deleted(info, Script, script))
        if hook is not None:
            rows = rows.filter(hook=find_even_deleted(info, Hook, hook))
        if status is not None:
            rows = rows.ended_as(enum_value(status))
        rows = rows.started_between(
            None if since is None else as_utc(since, "since"),
            None if until is None else as_utc(until, "until"),
        )
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_run(root: None, info: GraphQLResolveInfo, id: str) -> Run:
        return find(info, Run, id)

    @staticmethod
    def resolve_secrets(root: None, info: GraphQLResolveInfo) -> Any:
        return scoped(info, Secret)
