"""The GraphQL mutation that runs a script: its live version, another one, or a source."""

from collections.abc import Sequence
from typing import Any

import graphene
from django.core.exceptions import ValidationError
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, find, require_scopes
from accounts.scopes import Scope
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import domain_errors
from scripts_engine.flows.source import validate_source_text
from scripts_engine.graphql.mutations import event_of, script_errors
from scripts_engine.graphql.types import RunType
from scripts_engine.models import Run, Script, ScriptVersion, Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import Author
from scripts_engine.runs.typed_request import MAX_HEADERS, METHODS, clean_header, clean_query


class HeaderInput(graphene.InputObjectType):
    """A header of the request."""

    name = graphene.String(required=True, description="The name, a token of RFC 9110.")
    value = graphene.String(required=True, description="The value, in ISO 8859-1.")


def _version_of(info: GraphQLResolveInfo, script: Script, version_id: str) -> ScriptVersion:
    version = find(info, ScriptVersion, version_id)
    if version.script_id != script.pk:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    if version.published_at is None:
        # Its source is as good as one that is given.
        require_scopes(info, Scope.WRITE_DRAFTS)
    return version


def _check_source(source: str, version: ScriptVersion | None) -> None:
    if version is not None:
        message = "Give a version or a source, not both."
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, message, field="source")
    with domain_errors("source"):
        validate_source_text(source)


def _request(
    method: str | None = None,
    query: str | None = None,
    headers: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """The fields of the event that are given. Raises BAD_USER_INPUT by argument."""
    method = method or METHODS[0]
    if method not in METHODS:
        message = f"Choose one of {', '.join(METHODS)}."
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, message, field="method")
    given = headers or ()
    with domain_errors("query"):
        cleaned_query = clean_query(query or "")
    with domain_errors("headers"):
        if len(given) > MAX_HEADERS:
            raise ValidationError(f"Give at most {MAX_HEADERS} headers.")
        cleaned = tuple(clean_header(header["name"], header["value"]) for header in given)
    return {"method": method, "query": cleaned_query, "headers": cleaned}


@mutation(
    RunType,
    "Runs a script with the given request and returns the run. Its effects are real.",
    errors=script_errors,
    script=graphene.ID(required=True, description="The script's id."),
    version=graphene.ID(
        description="The version to run in place of the live one. One that was never live "
        "needs `WriteDrafts` as well."
    ),
    source=graphene.String(
        description="Lua 5.4, at most 64 KiB, to run without saving it. Needs `WriteDrafts` as "
        "well."
    ),
    method=graphene.String(description=f"{', '.join(METHODS)}; by default {METHODS[0]}."),
    query=graphene.String(description="The query, as in a URL."),
    headers=graphene.List(
        graphene.NonNull(HeaderInput), description=f"At most {MAX_HEADERS} headers."
    ),
    body=graphene.String(default_value="", description="The payload."),
)
def run_script_field(
    info: GraphQLResolveInfo,
    script: str,
    version: str | None = None,
    source: str | None = None,
    body: str | None = "",
    **request: Any,
) -> Run:
    row = find(info, Script, script)
    chosen = None if version is None else _version_of(info, row, version)
    if source is not None:
        _check_source(source, chosen)
    event = event_of(info, body, **_request(**request))
    # A slot of the sandbox limits the run instead.
    with info.context.place_left_to_others():
        return try_script(
            row,
            event=event,
            author=Author(api_key=caller_key(info)),
            trigger=Trigger.ADMIN_GRAPHQL,
            source=source,
            version=chosen,
        )
