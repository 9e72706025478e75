"""GraphQL types of scripts, hooks, runs and secrets."""

import base64
from datetime import UTC, datetime
from typing import Any

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from core.graphql.connection import connection_of
from scripts_engine.flows.source import diff_from_previous
from scripts_engine.graphql.hook_rules import HookRules
from scripts_engine.graphql.queued_runs import QueuedRunFields
from scripts_engine.graphql.related_runs import run_with_payload
from scripts_engine.graphql.run_status import RunStatusEnum
from scripts_engine.models import Hook, Run, Script, ScriptVersion, Secret


class ScriptVersionType(DjangoObjectType):
    """A version of a script's source."""

    class Meta:
        name = "ScriptVersion"
        model = ScriptVersion
        skip_registry = True
        fields = ("number", "source", "created_at")

    id = graphene.ID(required=True, description="The version's id.")
    author = graphene.String(
        description=(
            "The e-mail of the person, or the name of the key, that saved the version. Null for a "
            "person who is no longer a member."
        )
    )

    diff = graphene.String(required=True, description="A unified diff from the previous version.")

    @staticmethod
    def resolve_diff(version: ScriptVersion, info: GraphQLResolveInfo) -> str:
        return diff_from_previous(version)


class ScriptType(DjangoObjectType):
    """A Lua program."""

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
    source = graphene.String(required=True, description="The current version's source.")
    enabled = graphene.Boolean(required=True, description="Whether hooks run the script.")
    deleted = graphene.Boolean(
        required=True, description="Whether the script is deleted. Its runs stay readable."
    )
    version = graphene.Field(ScriptVersionType, description="The current version.")
    versions = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(ScriptVersionType))),
        description="The newest 100 versions, newest first.",
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
    def resolve_versions(script: Script, info: GraphQLResolveInfo) -> Any:
        versions = script.versions.select_related("created_by", "created_with")
        return versions.prefetch_related("created_by__memberships")[:100]


class HookType(HookRules, DjangoObjectType):
    """A webhook that runs a script."""

    class Meta:
        name = "Hook"
        model = Hook
        skip_registry = True
        fields = ("name", "created_at", "previous_valid_until")

    id = graphene.ID(required=True, description="The HookID.")
    enabled = graphene.Boolean(required=True, description="Whether the hook accepts calls.")
    script = graphene.Field(
        graphene.NonNull(ScriptType), description="The script that the hook runs."
    )
    url = graphene.String(
        required=True,
        description="The URL to call. It contains the call token only just after issuing.",
    )
    secure_url = graphene.String(
        required=True, description="The URL for HTTP Basic authentication with HookID:CallToken."
    )

    @staticmethod
    def resolve_enabled(hook: Hook, info: GraphQLResolveInfo) -> bool:
        return hook.is_enabled

    @staticmethod
    def resolve_script(hook: Hook, info: GraphQLResolveInfo) -> Script:
        return hook.script

    @staticmethod
    def resolve_url(hook: Hook, info: GraphQLResolveInfo) -> str:
        return getattr(hook, "url_just_issued", hook.url)


class IssuedHook(graphene.ObjectType):
    """A hook and its new call token, which is shown only here."""

    hook = graphene.Field(graphene.NonNull(HookType), description="The hook.")
    call_token = graphene.String(required=True, description="Store it: it is not shown again.")


class SecretType(DjangoObjectType):
    """A secret that scripts read by name. Its value is never shown."""

    class Meta:
        name = "Secret"
        model = Secret
        skip_registry = True
        fields = ("name", "created_at", "updated_at")

    id = graphene.ID(required=True, description="The secret's id.")


class LogLine(graphene.ObjectType):
    """A line that a script logged."""

    at = graphene.DateTime(required=True, description="When it was logged.")
    level = graphene.String(required=True, description="debug, info, warn or error.")
    text = graphene.String(required=True, description="The logged text.")


class RunError(graphene.ObjectType):
    """Why a run did not succeed."""

    message = graphene.String(required=True, description="The error message.")
    line = graphene.Int(description="The line of the source, if known.")
    traceback = graphene.String(description="The Lua traceback.")


class RunType(QueuedRunFields, DjangoObjectType):
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
            "response_status",
            "sender",
            "verified",
            "event_id",
        )

    id = graphene.ID(required=True, description="The run's id, as in Moonhook-Run-Id.")
    script = graphene.Field(graphene.NonNull(ScriptType), description="The script that ran.")
    script_version = graphene.Field(
        ScriptVersionType, description="The version that ran; null for an unsaved source."
    )
    hook = graphene.Field(HookType, description="The hook that was called, if any.")
    trigger = graphene.String(
        required=True, description="hook, admin-graphql, admin, queue, schedule or replay."
    )
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
        graphene.NonNull(graphene.List(graphene.NonNull(LogLine))),
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
    def resolve_hook(run: Run, info: GraphQLResolveInfo) -> Hook | None:
        if run.hook is not None:
            run.hook.script = run.script
        return run.hook

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
    def resolve_logs(run: Run, info: GraphQLResolveInfo) -> list[LogLine]:
        return [
            LogLine(
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


def _as_text(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


ScriptConnection = connection_of(ScriptType)
HookConnection = connection_of(HookType)
RunConnection = connection_of(RunType)
