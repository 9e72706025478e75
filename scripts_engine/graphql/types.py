"""Scripts, hooks and runs as the Admin GraphQL shows them."""

import base64
from datetime import UTC, datetime
from typing import Any

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from core.graphql.connection import connection_of
from scripts_engine.flows.source import diff_from_previous
from scripts_engine.models import Hook, Run, Script, ScriptVersion, Secret


class ScriptVersionType(DjangoObjectType):
    """A source that a script had."""

    class Meta:
        name = "ScriptVersion"
        model = ScriptVersion
        skip_registry = True
        fields = ("number", "source", "created_at")

    id = graphene.ID(required=True, description="The version's id.")
    author = graphene.String(
        description=(
            "The e-mail of the person or the name of the key that saved it. Null for a person who "
            "is not a member any more."
        )
    )

    diff = graphene.String(
        required=True, description="What it changed: a unified diff from the version before."
    )

    @staticmethod
    def resolve_diff(version: ScriptVersion, info: GraphQLResolveInfo) -> str:
        return diff_from_previous(version)


class ScriptType(DjangoObjectType):
    """A Lua program."""

    class Meta:
        name = "Script"
        model = Script
        skip_registry = True
        fields = ("name", "timeout_seconds", "created_at", "updated_at")

    id = graphene.ID(required=True, description="The script's id.")
    source = graphene.String(required=True, description="The current version's source.")
    enabled = graphene.Boolean(required=True, description="Whether its hooks run it.")
    deleted = graphene.Boolean(required=True, description="Whether only its runs are left.")
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


class HookType(DjangoObjectType):
    """A webhook that runs a script."""

    class Meta:
        name = "Hook"
        model = Hook
        skip_registry = True
        fields = ("name", "created_at", "previous_valid_until")

    id = graphene.ID(required=True, description="The HookID.")
    enabled = graphene.Boolean(required=True, description="Whether calls run the script.")
    script = graphene.Field(graphene.NonNull(ScriptType), description="What it runs.")
    url = graphene.String(
        required=True,
        description="The address that carries the call token; holds it only just after issuing.",
    )
    secure_url = graphene.String(
        required=True, description="The address for Basic authentication with HookID:CallToken."
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
    """A hook with a call token just made: the only time it is shown."""

    hook = graphene.Field(graphene.NonNull(HookType), description="The hook.")
    call_token = graphene.String(required=True, description="Keep it: it is not kept here.")


class SecretType(DjangoObjectType):
    """A secret that scripts read by name. Its value is shown nowhere."""

    class Meta:
        name = "Secret"
        model = Secret
        skip_registry = True
        fields = ("name", "created_at", "updated_at")

    id = graphene.ID(required=True, description="The secret's id.")


class RunStatusEnum(graphene.Enum):
    """How a run ended."""

    class Meta:
        name = "RunStatus"

    Succeeded = "succeeded"
    Failed = "failed"
    TimedOut = "timed-out"
    OutOfMemory = "out-of-memory"

    @property
    def description(self) -> str:
        return {
            "succeeded": "The script gave its reply.",
            "failed": "The script raised an error, or its reply was none.",
            "timed-out": "It took more time than it may.",
            "out-of-memory": "It took more memory than it may.",
        }[self.value]


class LogLine(graphene.ObjectType):
    """A line that the script logged."""

    at = graphene.DateTime(required=True, description="When.")
    level = graphene.String(required=True, description="debug, info, warn or error.")
    text = graphene.String(required=True, description="What.")


class RunError(graphene.ObjectType):
    """Why a run did not succeed."""

    message = graphene.String(required=True, description="The error's text.")
    line = graphene.Int(description="The line of the source, where there is one.")
    traceback = graphene.String(description="How the script came there.")


class RunType(DjangoObjectType):
    """One execution of a script.

    The plain strings of payload and reply are null when the bytes are not UTF-8.
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
        )

    id = graphene.ID(required=True, description="The run's id, as in Moonhook-Run-Id.")
    script = graphene.Field(graphene.NonNull(ScriptType), description="What ran.")
    script_version = graphene.Field(ScriptVersionType, description="In which version.")
    hook = graphene.Field(HookType, description="The hook that was called, if one was.")
    trigger = graphene.String(required=True, description="hook, admin-graphql or admin.")
    status = graphene.Field(graphene.NonNull(RunStatusEnum), description="How it ended.")
    payload_removed_at = graphene.DateTime(
        description="When payload, reply, headers, query and logs were removed, because the "
        "organisation's quota was used up; null while they are there. Then the bodies are null and "
        "empty, and there are no logs."
    )
    request_bytes = graphene.Int(
        required=True, description="The size of the payload; known when it was removed, too."
    )
    response_bytes = graphene.Int(
        required=True, description="The size of the reply; known when it was removed, too."
    )
    request_body = graphene.String(description="The payload as text.")
    request_body_base64 = graphene.String(required=True, description="The payload.")
    response_body = graphene.String(description="The script's reply as text.")
    response_body_base64 = graphene.String(required=True, description="The script's reply.")
    logs = graphene.Field(
        graphene.NonNull(graphene.List(graphene.NonNull(LogLine))), description="What it logged."
    )
    error = graphene.Field(RunError, description="Why it did not succeed.")

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
        return run.hook

    @staticmethod
    def resolve_request_bytes(run: Run, info: GraphQLResolveInfo) -> int:
        return len(run.request_body) if run.request_bytes is None else run.request_bytes

    @staticmethod
    def resolve_response_bytes(run: Run, info: GraphQLResolveInfo) -> int:
        return len(run.response_body) if run.response_bytes is None else run.response_bytes

    @staticmethod
    def resolve_request_body(run: Run, info: GraphQLResolveInfo) -> str | None:
        return None if run.payload_removed_at else _as_text(bytes(run.request_body))

    @staticmethod
    def resolve_request_body_base64(run: Run, info: GraphQLResolveInfo) -> str:
        return base64.b64encode(bytes(run.request_body)).decode()

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
