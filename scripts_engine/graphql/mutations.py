"""GraphQL mutations of scripts and secrets, and runScript, with the errors of their flows."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import graphene
from django.core.exceptions import ValidationError
from graphql import GraphQLResolveInfo

from accounts.graphql.programs.types import OrganisationType
from accounts.graphql.scope import (
    caller_key,
    caller_maker,
    caller_organisation,
    find,
    require_scopes,
    scope_refusals,
)
from accounts.graphql.shared import expected_revision
from accounts.models import Organisation
from accounts.scopes import Scope
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import caller_origin, domain_errors
from core.http.origin import client_address
from core.plain_text import is_encodable
from scripts_engine.flows.alert_script import set_alert_script
from scripts_engine.flows.scripts import (
    create_script,
    delete_script,
    restore_script_version,
    update_script,
)
from scripts_engine.flows.source import SourceError, validate_source_text
from scripts_engine.graphql.types import RunType, ScriptType, SecretType
from scripts_engine.models import Run, Script, ScriptVersion, Secret, Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.problems import NOT_RUN_ERRORS, retry_after_seconds, why_not_run
from scripts_engine.runs.spec import MAX_HEADERS, METHODS, Author, Event, clean_header, clean_query
from scripts_engine.secrets import delete_secret, set_secret

logger = logging.getLogger(__name__)

_NAME = "1 to 100 characters; no other script of the organisation has them, in whatever case."


def event_of(info: GraphQLResolveInfo, body: str | None, **request: Any) -> Event:
    """Raises BAD_USER_INPUT for text that UTF-8 cannot encode."""
    payload = body or ""
    if not is_encodable(payload):
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "The body is not valid text.", field="body"
        )
    event = Event(
        method="POST",
        query="",
        headers=(),
        body=payload.encode(),
        client_address=client_address(info.context.request),
    )
    return event._replace(**request)


@contextmanager
def script_errors() -> Iterator[None]:
    """Raises the errors of the flow called inside as ``GraphQLProblem``."""
    try:
        with domain_errors():
            yield
    except SourceError as error:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, error.message, field="source", line=error.line
        ) from None
    except NOT_RUN_ERRORS as error:
        raise _not_run_problem(error) from None


def _not_run_problem(error: Exception) -> GraphQLProblem:
    reason = why_not_run(error)
    if reason.graphql_code is GraphQLCode.UNAVAILABLE:
        logger.error("No sandbox is available: %s", error)
    retry_after = retry_after_seconds(error)
    extensions: dict[str, Any] = {} if retry_after is None else {"retryAfter": retry_after}
    return GraphQLProblem(reason.graphql_code, reason.text, **extensions)


# New objects for each field: graphene sorts arguments by their creation.
def _settings() -> dict[str, graphene.Scalar]:
    return {
        "timeout_seconds": graphene.Float(description="Longer runs are stopped. Maximum 25."),
        "enabled": graphene.Boolean(description="Whether hooks run the script."),
        "max_concurrent_runs": graphene.Int(
            description="Runs at the same time, over all hooks: 1 to 10000. Null: unlimited."
        ),
    }


@mutation(
    ScriptType,
    "Creates a script and publishes its source, as one release. A source that does not "
    "compile is refused, with the line.",
    errors=script_errors,
    name=graphene.String(required=True, description=_NAME),
    source=graphene.String(required=True, description="Lua 5.4; at most 64 KiB."),
    is_library=graphene.Boolean(
        default_value=False,
        description="Whether it is a library, which other scripts require. It stays one.",
    ),
    **_settings(),
)
def create_script_field(
    info: GraphQLResolveInfo,
    name: str,
    source: str,
    is_library: bool | None = False,
    timeout_seconds: float | None = None,
    enabled: bool | None = None,
    **limits: int | None,
) -> Script:
    given = {"timeout_seconds": timeout_seconds, "is_enabled": enabled}
    fields: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    return create_script(
        caller_organisation(info),
        name=name,
        source=source,
        author=Author(api_key=caller_key(info)),
        is_library=bool(is_library),
        origin=caller_origin(info),
        **(fields | limits),
    )


@mutation(
    ScriptType,
    "Changes the given fields of a script, all or none, as one release. A new source "
    "is published at once as a new version.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The script's id."),
    name=graphene.String(description=_NAME),
    source=graphene.String(description="Lua 5.4; at most 64 KiB."),
    **_settings(),
    expected_revision=expected_revision(),
)
def update_script_field(
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    source: str | None = None,
    timeout_seconds: float | None = None,
    enabled: bool | None = None,
    expected_revision: int | None = None,
    **limits: int | None,
) -> Script:
    given = {"name": name, "timeout_seconds": timeout_seconds, "is_enabled": enabled}
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    changes |= limits
    script = find(info, Script, id)
    return update_script(
        script,
        author=Author(api_key=caller_key(info)),
        source=source,
        expected_revision=expected_revision,
        origin=caller_origin(info),
        **changes,
    )


@mutation(
    ScriptType,
    "Publishes the source of an earlier version as a new version.",
    errors=script_errors,
    version=graphene.ID(required=True, description="The version's id."),
)
def restore_script_version_field(info: GraphQLResolveInfo, version: str) -> Script:
    row = find(info, ScriptVersion, version)
    author = Author(api_key=caller_key(info))
    return restore_script_version(row, author=author, origin=caller_origin(info))


@mutation(
    graphene.Boolean,
    "Deletes a script, with immediate effect on its hooks. Its runs stay readable. A script with "
    "hooks or schedules takes WriteHooks too.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The script's id."),
)
def delete_script_field(info: GraphQLResolveInfo, id: str) -> bool:
    script, held = find(info, Script, id), caller_maker(info).scopes
    with scope_refusals(info):
        delete_script(script, held=held, origin=caller_origin(info))
    return True


@mutation(
    OrganisationType,
    "Chooses the script that is run with each alert, or none. Its runs have the trigger `alert`.",
    errors=script_errors,
    script=graphene.ID(description="The script's id. Null: no script is told of alerts."),
)
def set_alert_script_field(info: GraphQLResolveInfo, script: str | None = None) -> Organisation:
    chosen = None if script is None else find(info, Script, script)
    organisation = caller_organisation(info)
    set_alert_script(organisation, chosen, origin=caller_origin(info))
    return organisation


@mutation(
    SecretType,
    "Creates or replaces a secret. Scripts read the new value from their next run on.",
    errors=script_errors,
    name=graphene.String(required=True, description="The name in scripts."),
    value=graphene.String(required=True, description="At most 16 KiB. Never shown."),
    expected_revision=expected_revision(),
)
def set_secret_field(
    info: GraphQLResolveInfo,
    name: str,
    value: str,
    expected_revision: int | None = None,
) -> Secret:
    return set_secret(
        caller_organisation(info),
        name=name,
        value=value,
        origin=caller_origin(info),
        expected_revision=expected_revision,
    )


@mutation(
    graphene.Boolean,
    "Deletes a secret. Scripts that read it get nil.",
    errors=script_errors,
    name=graphene.String(required=True, description="The name in scripts."),
)
def delete_secret_field(info: GraphQLResolveInfo, name: str) -> bool:
    delete_secret(caller_organisation(info), name, origin=caller_origin(info))
    return True


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
