"""GraphQL types and queries of refused calls and of senders."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find_even_deleted, scoped
from accounts.graphql.shared import enum_value
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_utc
from hooks.flows.refused_calls import explain
from hooks.graphql.hooks import HookType
from hooks.graphql.senders import SenderType
from hooks.models import Hook, RefusedCall
from hooks.senders import PRESETS, Hint, Preset, RefusalReason
from scripts_engine.graphql.types import ScriptType
from scripts_engine.models import Script

# Each diagnosis computes many signatures of up to 256 KiB.
MAX_DIAGNOSES = 40
_DIAGNOSES = "diagnoses of refused calls"

_TEXTS = {
    RefusalReason.WRONG_TOKEN: "No hook has the call token.",
    RefusalReason.NETWORK_NOT_ALLOWED: "The client address is in no allowed network.",
    RefusalReason.METHOD_NOT_ALLOWED: "The hook does not run for this method.",
    RefusalReason.BODY_TOO_LARGE: "The payload is larger than the hook allows.",
    RefusalReason.NO_SECRET_SET: "The hook has a sender, but no signing secret.",
    RefusalReason.SIGNATURE_MISSING: "The call has no signature.",
    RefusalReason.SIGNATURE_MALFORMED: "The signature or its time cannot be read.",
    RefusalReason.SIGNATURE_MISMATCH: "No signing secret made this signature.",
    RefusalReason.TIMESTAMP_TOO_OLD: "The signed time is too long ago.",
    RefusalReason.TIMESTAMP_TOO_NEW: "The signed time is too far ahead.",
    RefusalReason.HANDSHAKE_REFUSED: "The handshake proves nothing, or was not expected.",
    RefusalReason.RATE_LIMITED: "Too many calls.",
    RefusalReason.BUSY: "Nothing was free to run it, or the same delivery was running.",
    RefusalReason.QUEUE_FULL: "The organisation's queue was full.",
}


def _description(reason: Enum | None) -> str:
    return "Why a call ran nothing." if reason is None else _TEXTS[RefusalReason(reason.value)]


RefusalReasonEnum = graphene.Enum(
    "RefusalReason",
    [(reason.value, reason.value) for reason in RefusalReason],
    description=_description,
)


class RefusedCallType(DjangoObjectType):
    """A call that ran nothing. The newest 20 of each hook are kept."""

    class Meta:
        name = "RefusedCall"
        model = RefusedCall
        skip_registry = True
        fields = ("at",)

    id = graphene.ID(required=True, description="The refused call's id.")
    reason = graphene.Field(graphene.NonNull(RefusalReasonEnum), description="Why it was refused.")
    detail = graphene.String(description="What was seen at the call, for example “412 s old”.")
    hints = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="Codes of likely causes, the likeliest first. "
        f"At most {MAX_DIAGNOSES} calls of a document are diagnosed.",
    )
    explanations = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="The same causes in sentences that say what to do.",
    )
    method = graphene.String(required=True, description="The method of the call.")
    client_address = graphene.String(description="The caller's address.")
    header_names = graphene.List(
        graphene.NonNull(graphene.String), required=True, description="The names of its headers."
    )
    hook = graphene.Field(HookType, description="The hook; null if none has the call's token.")
    script = graphene.Field(graphene.NonNull(ScriptType), description="The script of the URL.")

    @staticmethod
    def resolve_reason(call: RefusedCall, info: GraphQLResolveInfo) -> str:
        return str(call.reason)

    @staticmethod
    def resolve_detail(call: RefusedCall, info: GraphQLResolveInfo) -> str | None:
        return call.detail or None

    @staticmethod
    def resolve_hints(call: RefusedCall, info: GraphQLResolveInfo) -> list[str]:
        return [hint.code for hint in _diagnosis(call, info)]

    @staticmethod
    def resolve_explanations(call: RefusedCall, info: GraphQLResolveInfo) -> list[str]:
        return [hint.sentence for hint in _diagnosis(call, info)]

    @staticmethod
    def resolve_hook(call: RefusedCall, info: GraphQLResolveInfo) -> Hook | None:
        return call.hook

    @staticmethod
    def resolve_script(call: RefusedCall, info: GraphQLResolveInfo) -> Script:
        return call.script


def _diagnosis(call: RefusedCall, info: GraphQLResolveInfo) -> Sequence[Hint]:
    """The hints of one call, found once for a document."""
    found: dict[object, Sequence[Hint]] = info.context.counts.setdefault(_DIAGNOSES, {})
    if call.pk not in found:
        if len(found) >= MAX_DIAGNOSES:
            raise GraphQLProblem(
                GraphQLCode.LIMIT_EXCEEDED,
                f"Ask for the hints of at most {MAX_DIAGNOSES} refused calls at a time.",
            )
        found[call.pk] = explain(call)
    return found[call.pk]


RefusedCallConnection = connection_of(RefusedCallType)


class SendersQuery(graphene.ObjectType):
    senders = graphene.List(
        graphene.NonNull(SenderType),
        required=True,
        description="The senders whose calls can be verified.",
    )
    refused_calls = connection_field(
        RefusedCallConnection,
        "The refused calls of the organisation's scripts.",
        hook=graphene.ID(description="Only calls of this hook."),
        script=graphene.ID(description="Only calls of this script."),
        reason=RefusalReasonEnum(description="Only calls that were refused for this reason."),
        since=graphene.DateTime(description="Only calls at this time or later."),
        until=graphene.DateTime(description="Only calls before this time."),
    )

    @staticmethod
    def resolve_senders(root: None, info: GraphQLResolveInfo) -> list[Preset]:
        return list(PRESETS.values())

    @staticmethod
    def resolve_refused_calls(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        hook: str | None = None,
        script: str | None = None,
        reason: Enum | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page:
        rows = scoped(info, RefusedCall).select_related(
            "script__current_version", "script__organisation", "hook__script__organisation"
        )
        if hook is not None:
            rows = rows.filter(hook=find_even_deleted(info, Hook, hook))
        if script is not None:
            rows = rows.filter(script=find_even_deleted(info, Script, script))
        if reason is not None:
            rows = rows.filter(reason=enum_value(reason))
        if since is not None:
            rows = rows.filter(at__gte=as_utc(since, "since"))
        if until is not None:
            rows = rows.filter(at__lt=as_utc(until, "until"))
        return page_of(info, rows, first, after)
