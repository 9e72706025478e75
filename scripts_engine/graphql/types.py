"""GraphQL types of scripts, runs and secrets."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.programs.types import OrganisationType
from accounts.graphql.scope import scoped
from accounts.models import Organisation
from core.graphql.connection import connection_of
from core.graphql.resolving import extend
from scripts_engine.flows.alert_script import alert_script_of
from scripts_engine.flows.source import diff_from_previous
from scripts_engine.graphql.runs import RunStatusEnum, pushed_runs, related_run, run_with_payload
from scripts_engine.models import (
    Release,
    Run,
    Script,
    ScriptVersion,
    Secret,
    Trigger,
    VersionState,
)
from scripts_engine.models.script import FORMER_MEMBER, UNKNOWN_AUTHOR
from scripts_engine.models.stored import bytes_used_by
from scripts_engine.runs.spec import MAX_HEADERS
from scripts_engine.shown_headers import ShownHeader, shown_headers

# By its name: runs have fields of this type.
_RUN = "scripts_engine.graphql.types.RunType"
_RELEASE = "scripts_engine.graphql.releases.ReleaseType"
MOST_LISTED = 100


@extend(OrganisationType)
class OrganisationOfRuns:
    run_bytes_used = graphene.Float(
        required=True,
        description="Size of its runs' payloads, replies, headers and logs, and of its scripts' "
        "versions and hooks, in whole bytes; a few seconds old.",
    )
    run_bytes_quota = graphene.Float(
        description="Quota of that size, beyond which the oldest data of runs is removed. Null: no "
        "quota.",
    )

    alert_script = graphene.Field(
        "scripts_engine.graphql.types.ScriptType",
        description="The script that is run with each alert. Null: none, or it is deleted.",
    )

    @staticmethod
    def resolve_alert_script(organisation: Organisation, info: GraphQLResolveInfo) -> Script | None:
        return alert_script_of(organisation)

    @staticmethod
    def resolve_run_bytes_used(organisation: Organisation, info: GraphQLResolveInfo) -> int:
        return bytes_used_by(organisation)

    @staticmethod
    def resolve_run_bytes_quota(organisation: Organisation, info: GraphQLResolveInfo) -> int | None:
        return organisation.run_bytes_limit


class VersionStateEnum(graphene.Enum):
    """Whether a version runs."""

    class Meta:
        name = "VersionState"

    Draft = VersionState.DRAFT.value
    Live = VersionState.LIVE.value
    Past = VersionState.PAST.value

    @property
    def description(self) -> str:
        return {
            VersionState.DRAFT.value: "Its author's draft; only runs that name it run it.",
            VersionState.LIVE.value: "Hooks, queue and schedules run it.",
            VersionState.PAST.value: "It was live, or a draft that has run.",
        }[self.value]


class ScriptVersionType(DjangoObjectType):
    """A version of a script's source."""

    class Meta:
        name = "ScriptVersion"
        model = ScriptVersion
        skip_registry = True
        fields = ("number", "source", "created_at")

    id = graphene.ID(required=True, description="The version's id.")
    author = graphene.String(
        required=True,
        description="The e-mail of the person, or the name of the key, that saved the version; "
        f"`{FORMER_MEMBER}` for a person who is no longer one, `{UNKNOWN_AUTHOR}` if neither.",
    )
    state = graphene.Field(
        graphene.NonNull(VersionStateEnum), description="Whether it is a draft, live or past."
    )
    release = graphene.Field(
        _RELEASE,
        description="The newest release that put it live; null for a draft, and if it was deleted.",
    )
    libraries = graphene.List(
        graphene.NonNull(lambda: ScriptVersionType),
        required=True,
        description="The versions of libraries that it requires, at most 100.",
    )

    diff = graphene.String(required=True, description="A unified diff from the previous version.")

    @staticmethod
    def resolve_diff(version: ScriptVersion, info: GraphQLResolveInfo) -> str:
        return diff_from_previous(version)

    @staticmethod
    def resolve_state(version: ScriptVersion, info: GraphQLResolveInfo) -> str:
        return version.state.value

    @staticmethod
    def resolve_release(version: ScriptVersion, info: GraphQLResolveInfo) -> Release | None:
        release: Release | None = scoped(info, Release).putting_live(version.pk).first()
        return release

    @staticmethod
    def resolve_libraries(version: ScriptVersion, info: GraphQLResolveInfo) -> list[ScriptVersion]:
        rows = version.requirements.select_related(
            "library_version__script",
            "library_version__created_by",
            "library_version__created_with",
        )
        rows = rows.prefetch_related("library_version__created_by__memberships")
        return [row.library_version for row in rows.order_by("name")[:MOST_LISTED]]


class ScriptType(DjangoObjectType):
    """A Lua program, or a library that other scripts require."""

    class Meta:
        name = "Script"
        model = Script
        skip_registry = True
        fields = (
            "name",
            "timeout_seconds",
            "max_concurrent_runs",
            "queue_paused_at",
            "created_at",
            "updated_at",
        )

    id = graphene.ID(required=True, description="The script's id.")
    source = graphene.String(required=True, description="The live version's source.")
    enabled = graphene.Boolean(required=True, description="Whether hooks run the script.")
    deleted = graphene.Boolean(
        required=True, description="Whether the script is deleted. Its runs stay readable."
    )
    version = graphene.Field(ScriptVersionType, description="The live version, as `live`.")
    versions = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(ScriptVersionType))),
        description="The newest 100 versions that were published, and drafts, newest first.",
    )
    revision = graphene.Int(
        required=True,
        description="Grows with each change, for `expectedRevision`. Saving a draft is none.",
    )
    is_library = graphene.Boolean(
        required=True, description="Whether other scripts require it, and nothing runs it."
    )
    live = graphene.Field(ScriptVersionType, description="The live version.")
    drafts = graphene.List(
        graphene.NonNull(ScriptVersionType),
        required=True,
        description="The drafts, one for each author, newest first, at most 100.",
    )
    required_by = graphene.List(
        graphene.NonNull(lambda: ScriptType),
        required=True,
        description="The scripts whose live version requires this library in any version, by "
        "name, at most 100.",
    )

    @staticmethod
    def resolve_enabled(script: Script, info: GraphQLResolveInfo) -> bool:
        return script.is_enabled

    @staticmethod
    def resolve_deleted(script: Script, info: GraphQLResolveInfo) -> bool:
        return script.deleted_at is not None

    @staticmethod
    def resolve_version(script: Script, info: GraphQLResolveInfo) -> ScriptVersion | None:
        version = script.current_version
        if version is not None:
            version.script = script
        return version

    @staticmethod
    def resolve_live(script: Script, info: GraphQLResolveInfo) -> ScriptVersion | None:
        return ScriptType.resolve_version(script, info)

    @staticmethod
    def resolve_versions(script: Script, info: GraphQLResolveInfo) -> Any:
        return _with_authors(script.versions.to_list())[:MOST_LISTED]

    @staticmethod
    def resolve_drafts(script: Script, info: GraphQLResolveInfo) -> Any:
        return _with_authors(script.versions.drafts())[:MOST_LISTED]

    @staticmethod
    def resolve_required_by(script: Script, info: GraphQLResolveInfo) -> Any:
        if not script.is_library:
            return []
        rows = scoped(info, Script).requiring(script).select_related("current_version")
        return rows.order_by("name_key")[:MOST_LISTED]


def _with_authors(versions: Any) -> Any:
    rows = versions.select_related("created_by", "created_with")
    return rows.prefetch_related("created_by__memberships")


class SecretType(DjangoObjectType):
    """A secret that scripts read by name. Its value is never shown."""

    class Meta:
        name = "Secret"
        model = Secret
        skip_registry = True
        fields = ("name", "created_at", "updated_at", "revision")

    id = graphene.ID(required=True, description="The secret's id.")


class RequestHeader(graphene.ObjectType):
    """A header of a call. Credentials, and headers that may be one, have no value."""

    name = graphene.String(required=True, description="The name, in title case.")
    value = graphene.String(description="The value; null if it is hidden.")


class LogLineType(graphene.ObjectType):
    """A line that a script logged."""

    class Meta:
        name = "LogLine"

    at = graphene.DateTime(required=True, description="When it was logged.")
    level = graphene.String(required=True, description="debug, info, warn or error.")
    text = graphene.String(required=True, description="The logged text.")


class RunError(graphene.ObjectType):
    """Why a run did not succeed."""

    message = graphene.String(required=True, description="The error message.")
    line = graphene.Int(description="The line of the source, if known.")
    traceback = graphene.String(description="The Lua traceback.")


class RunType(DjangoObjectType):
    """One execution of a script, or one that is queued.

    Payload and reply as text are null if the bytes are not UTF-8. Until a queued run starts,
    `startedAt` is when it was accepted and `responseStatus` that of the acceptance.
    """

    class Meta:
        name = "Run"
        model = Run
        skip_registry = True
        fields = (
            "started_at",
            "queued_ms",
            "duration_ms",
            "request_method",
            "request_query",
            "request_path",
            "response_status",
            "sender",
            "verified",
            "event_id",
        )

    attempt = graphene.Int(
        required=True, description="The number of the attempt, from 1. Each attempt is a run."
    )
    first_run = graphene.Field(
        _RUN,
        description="The first attempt, which has the payload of all: the run itself if it is the "
        "first; null if that one was deleted.",
    )
    dead_letter = graphene.Boolean(
        required=True, description="Whether the last attempt failed and was not replayed since."
    )
    scheduled_at = graphene.DateTime(
        description="The time of the schedule at which it was due; null if no schedule ran it."
    )
    pushed_by = graphene.Field(_RUN, description="The run whose script put it into the queue.")
    pushed_runs = graphene.List(
        graphene.NonNull(_RUN),
        required=True,
        description="What the run's script put into the queue, oldest first: the first attempts.",
    )
    replay_of = graphene.Field(_RUN, description="The run whose payload it runs again.")
    id = graphene.ID(required=True, description="The run's id, as in Moonhook-Run-Id.")
    script = graphene.Field(graphene.NonNull(ScriptType), description="The script that ran.")
    script_version = graphene.Field(
        ScriptVersionType, description="The version that ran; null for an unsaved source."
    )
    is_draft = graphene.Boolean(
        required=True,
        description="Whether what ran had never been live: a draft, or a source that was not "
        "saved. Such runs are counted nowhere and never make a script fail.",
    )
    trigger = graphene.String(required=True, description=f"{', '.join(Trigger.values)}.")
    status = graphene.Field(
        graphene.NonNull(RunStatusEnum), description="How the run ended, or that it has not."
    )
    payload_removed_at = graphene.DateTime(
        description="When payload, reply, headers, query and logs were removed to keep within the "
        "organisation's quota; null if they were not. Afterwards, text bodies are null, base64 "
        "bodies are empty, and there are no logs."
    )
    request_bytes = graphene.Int(
        required=True, description="The size of the payload, even if it was removed."
    )
    response_bytes = graphene.Int(
        required=True, description="The size of the reply, even if it was removed."
    )
    request_headers = graphene.List(
        graphene.NonNull(RequestHeader),
        required=True,
        description=f"The headers of the call, at most {MAX_HEADERS}, as `runScript` takes those "
        "with a value; none after the payload was removed.",
    )
    request_body = graphene.String(
        description="The payload as text; null if it was removed, for a later attempt with that of "
        "the first."
    )
    request_body_base64 = graphene.String(required=True, description="The payload in base64.")
    response_body = graphene.String(description="The script's reply as text.")
    response_body_base64 = graphene.String(
        required=True, description="The script's reply in base64."
    )
    logs = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(LogLineType))),
        description="Lines that the script logged.",
    )
    error = graphene.Field(RunError, description="Why the run did not succeed.")

    @staticmethod
    def resolve_status(run: Run, info: GraphQLResolveInfo) -> str:
        return str(run.status)

    @staticmethod
    def resolve_script(run: Run, info: GraphQLResolveInfo) -> Script:
        return run.script

    @staticmethod
    def resolve_script_version(run: Run, info: GraphQLResolveInfo) -> ScriptVersion | None:
        return run.script_version

    @staticmethod
    def resolve_request_headers(run: Run, info: GraphQLResolveInfo) -> Sequence[ShownHeader]:
        return shown_headers(run)

    @staticmethod
    def resolve_request_body(run: Run, info: GraphQLResolveInfo) -> str | None:
        source = run_with_payload(run, info)
        if source is None or source.payload_removed_at:
            return None
        return _as_text(bytes(source.request_body))

    @staticmethod
    def resolve_request_body_base64(run: Run, info: GraphQLResolveInfo) -> str:
        source = run_with_payload(run, info)
        return "" if source is None else base64.b64encode(bytes(source.request_body)).decode()

    @staticmethod
    def resolve_response_body(run: Run, info: GraphQLResolveInfo) -> str | None:
        return None if run.payload_removed_at else _as_text(bytes(run.response_body))

    @staticmethod
    def resolve_response_body_base64(run: Run, info: GraphQLResolveInfo) -> str:
        return base64.b64encode(bytes(run.response_body)).decode()

    @staticmethod
    def resolve_logs(run: Run, info: GraphQLResolveInfo) -> list[LogLineType]:
        return [
            LogLineType(
                at=datetime.fromtimestamp(line["at"], UTC), level=line["level"], text=line["text"]
            )
            for line in run.logs
        ]

    @staticmethod
    def resolve_error(run: Run, info: GraphQLResolveInfo) -> RunError | None:
        if not run.error_message:
            return None
        return RunError(
            message=run.error_message,
            line=run.error_line,
            traceback=run.error_traceback or None,
        )

    @staticmethod
    def resolve_attempt(run: Run, info: GraphQLResolveInfo) -> int:
        return run.attempt or 1

    @staticmethod
    def resolve_first_run(run: Run, info: GraphQLResolveInfo) -> Run | None:
        return run_with_payload(run, info)

    @staticmethod
    def resolve_dead_letter(run: Run, info: GraphQLResolveInfo) -> bool:
        return bool(run.is_dead_letter)

    @staticmethod
    def resolve_pushed_by(run: Run, info: GraphQLResolveInfo) -> Run | None:
        return related_run(run, info, "pushed_by")

    @staticmethod
    def resolve_pushed_runs(run: Run, info: GraphQLResolveInfo) -> Sequence[Run]:
        return pushed_runs(run, info)

    @staticmethod
    def resolve_replay_of(run: Run, info: GraphQLResolveInfo) -> Run | None:
        return related_run(run, info, "replay_of")


def _as_text(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


ScriptConnection = connection_of(ScriptType)
RunConnection = connection_of(RunType)
