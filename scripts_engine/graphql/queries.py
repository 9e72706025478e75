"""GraphQL queries of scripts, runs and secrets."""

from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find, scoped
from core.graphql.connection import Page, connection_field, page_of
from core.graphql.feed import Feed, feed_arguments, feed_of, feed_type
from core.plain_text import storable
from scripts_engine.graphql.runs import (
    RunFilter,
    attempts_of,
    filtered,
    run_filter_arguments,
    runs_to_list,
)
from scripts_engine.graphql.types import (
    RunConnection,
    RunType,
    ScriptConnection,
    ScriptType,
    SecretType,
)
from scripts_engine.models import Run, Script, Secret

RunFeed = feed_type(RunType)


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
    runs = connection_field(
        RunConnection,
        "The runs of the organisation's scripts, including deleted scripts.",
        **run_filter_arguments(),
        first_run=graphene.ID(description="Only the attempts of which this run is the first."),
    )
    runs_since = graphene.Field(
        graphene.NonNull(RunFeed),
        description=(
            "The runs that have ended, in the order in which they were committed as ended: a "
            "program that goes on with each `cursor` gets every run once. What others are still "
            "committing comes later."
        ),
        **feed_arguments(),
        filter=RunFilter(description="Only these runs."),
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
    def resolve_runs(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        first_run: str | None = None,
        **filters: Any,
    ) -> Page:
        rows = filtered(info, runs_to_list(info), **filters)
        if first_run is not None:
            rows = rows.filter(pk__in=attempts_of(info, first_run))
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_runs_since(
        root: None,
        info: GraphQLResolveInfo,
        cursor: str | None = None,
        first: int | None = None,
        filter: dict[str, Any] | None = None,
    ) -> Feed:
        rows = filtered(info, runs_to_list(info), **(filter or {}))
        return feed_of(info, scoped(info, Run), rows, "ended_in", first=first, cursor=cursor)

    @staticmethod
    def resolve_run(root: None, info: GraphQLResolveInfo, id: str) -> Run:
        return find(info, Run, id)

    @staticmethod
    def resolve_secrets(root: None, info: GraphQLResolveInfo) -> Any:
        return scoped(info, Secret)
