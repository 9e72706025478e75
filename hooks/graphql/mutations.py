"""GraphQL mutations that create and change hooks, say who calls them, and replay refused calls."""

from enum import Enum
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, caller_organisation, find, scoped
from accounts.graphql.shared import enum_value, expected_revision
from core.graphql.feed import end_of_feed
from core.graphql.mutation import mutation
from core.graphql.resolving import caller_origin, extend, one
from hooks.audit_kinds import HookEvent
from hooks.flows.hooks import (
    IssuedHook,
    delete_hook,
    hooks_by_id,
    issue_hook,
    pin_hook,
    record_about_hook,
    rotate_call_token,
    update_hook,
)
from hooks.flows.refused_calls import replay_refused_call
from hooks.flows.send_test_event import send_test_event
from hooks.flows.senders import (
    OVERLAP_SECONDS,
    delete_signing_secret,
    expect_handshake,
    set_sender,
    set_signing_secret,
)
from hooks.graphql.hooks import HookType, IssuedHookType, arguments_of
from hooks.graphql.senders import HmacInput, SigningSecretType, given_hmac
from hooks.models import Hook, RefusedCall, SigningSecret
from hooks.rules import RULES
from scripts_engine.graphql.mutations import script_errors
from scripts_engine.graphql.plans import AppliedPlanType
from scripts_engine.graphql.types import RunType
from scripts_engine.models import Run, Script, ScriptVersion
from scripts_engine.plans.applying import Applied
from scripts_engine.runs.spec import Author


def as_issued_hook(issued: IssuedHook) -> IssuedHookType:
    """The issued hook with its complete URL, which is shown only in this response."""
    hook, call_token = issued
    hook.url_just_issued = hook.url_with(call_token)  # type: ignore[attr-defined]
    return IssuedHookType(hook=hook, call_token=call_token)


@extend(AppliedPlanType)
class HooksOfPlan:
    issued_hooks = graphene.List(
        graphene.NonNull(IssuedHookType),
        required=True,
        description="The new hooks with their call tokens, which are shown only here.",
    )

    @staticmethod
    def resolve_issued_hooks(applied: Applied, info: GraphQLResolveInfo) -> list[IssuedHookType]:
        ids = [issued.object_id for issued in applied.issued]
        hooks = hooks_by_id(caller_organisation(info), ids) if ids else {}
        return [
            as_issued_hook(IssuedHook(hooks[issued.object_id], issued.secret))
            for issued in applied.issued
        ]


def _stored(rules: dict[str, Any]) -> dict[str, Any]:
    """The given rules, enums as their values."""
    return {
        name: enum_value(value) if isinstance(value, Enum) else value
        for name, value in rules.items()
    }


@mutation(
    IssuedHookType,
    "Creates a webhook for a script. Its call token is shown only in this response.",
    errors=script_errors,
    script=graphene.ID(required=True, description="The script's id."),
    name=graphene.String(
        description="Describes the caller; no other hook of the script has it. A free name if "
        "not given."
    ),
    **arguments_of(rule for rule in RULES if rule.is_given_at_creation),
)
def create_hook_field(
    info: GraphQLResolveInfo, script: str, name: str | None = None, **rules: Any
) -> IssuedHookType:
    row = find(info, Script, script)
    origin = caller_origin(info)
    return as_issued_hook(issue_hook(row, name=name or "", origin=origin, **_stored(rules)))


@mutation(
    IssuedHookType,
    "Gives a hook a new call token, which is shown only in this response.",
    errors=script_errors,
    hook=graphene.ID(required=True, description="The HookID."),
    overlap_seconds=graphene.Int(
        default_value=0, description="How long the old token stays valid: 0 to 604800."
    ),
)
def rotate_call_token_field(
    info: GraphQLResolveInfo, hook: str, overlap_seconds: int | None = 0
) -> IssuedHookType:
    row = find(info, Hook, hook)
    issued = rotate_call_token(
        row,
        overlap_seconds=overlap_seconds or 0,
        origin=caller_origin(info),
    )
    return as_issued_hook(issued)


@mutation(
    HookType,
    "Changes the given fields of a hook. Null resets a limit to its default.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The HookID."),
    name=graphene.String(description="Describes the caller."),
    enabled=graphene.Boolean(description="If false, the hook answers as if it did not exist."),
    **arguments_of(RULES),
    expected_revision=expected_revision(),
)
def update_hook_field(
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    enabled: bool | None = None,
    expected_revision: int | None = None,
    **rules: Any,
) -> Hook:
    given = {"name": name, "is_enabled": enabled}
    changes = {field: value for field, value in given.items() if value is not None}
    hook = find(info, Hook, id)
    return update_hook(
        hook,
        origin=caller_origin(info),
        expected_revision=expected_revision,
        **{**changes, **_stored(rules)},
    )


@mutation(
    HookType,
    "Lets a hook run one version of its script, whatever goes live. Its waiting runs "
    "run it too. Null lets it run the live version again.",
    errors=script_errors,
    hook=graphene.ID(required=True, description="The HookID."),
    version=graphene.ID(description="The id of a version of the hook's script that was published."),
    expected_revision=expected_revision(),
)
def pin_hook_field(
    info: GraphQLResolveInfo,
    hook: str,
    version: str | None = None,
    expected_revision: int | None = None,
) -> Hook:
    row = find(info, Hook, hook)
    pin = None if version is None else find(info, ScriptVersion, version)
    return pin_hook(
        row,
        pin,
        origin=caller_origin(info),
        expected_revision=expected_revision,
    )


@mutation(
    graphene.Boolean,
    "Deletes a hook, with immediate effect. Its runs stay readable.",
    id=graphene.ID(required=True, description="The HookID."),
)
def delete_hook_field(info: GraphQLResolveInfo, id: str) -> bool:
    delete_hook(find(info, Hook, id), origin=caller_origin(info))
    return True


# --- Senders --------------------------------------------------------------------------------------


@mutation(
    HookType,
    "Sets who calls a hook; other calls are refused. What does not fit the new sender "
    "is reset. Null removes the sender with its secrets.",
    errors=script_errors,
    hook=graphene.ID(required=True, description="The HookID."),
    sender=graphene.String(description="A name out of `senders`."),
    hmac=HmacInput(description="For the sender `hmac`, and for no other."),
    expected_revision=expected_revision(),
)
def set_sender_field(
    info: GraphQLResolveInfo,
    hook: str,
    sender: str | None = None,
    hmac: dict[str, Any] | None = None,
    expected_revision: int | None = None,
) -> Hook:
    row = find(info, Hook, hook)
    options = None if hmac is None else given_hmac(hmac)
    return set_sender(
        row,
        sender=sender,
        hmac=options,
        origin=caller_origin(info),
        expected_revision=expected_revision,
    )


@mutation(
    SigningSecretType,
    "Sets the secret with which the sender signs. The current one ends after the "
    "overlap, an older one at once.",
    errors=script_errors,
    hook=graphene.ID(required=True, description="The HookID."),
    value=graphene.String(required=True, description="Never shown."),
    overlap_seconds=graphene.Int(
        default_value=OVERLAP_SECONDS,
        description="How long the current secret stays accepted: 0 to 604800.",
    ),
)
def set_signing_secret_field(
    info: GraphQLResolveInfo,
    hook: str,
    value: str,
    overlap_seconds: int | None = OVERLAP_SECONDS,
) -> SigningSecret:
    row = find(info, Hook, hook)
    return set_signing_secret(
        row,
        value,
        overlap_seconds=OVERLAP_SECONDS if overlap_seconds is None else overlap_seconds,
        origin=caller_origin(info),
    )


@mutation(
    graphene.Boolean,
    "Ends a signing secret at once. Calls that are signed with it are refused.",
    id=graphene.ID(required=True, description="The signing secret's id."),
)
def delete_signing_secret_field(info: GraphQLResolveInfo, id: str) -> bool:
    secret = one(scoped(info, SigningSecret).existing().live(), id)
    delete_signing_secret(secret, origin=caller_origin(info))
    return True


@mutation(
    HookType,
    "Lets the next handshake bring the signing secret, for 10 minutes.",
    errors=script_errors,
    hook=graphene.ID(required=True, description="The HookID."),
)
def expect_handshake_field(info: GraphQLResolveInfo, hook: str) -> Hook:
    row = find(info, Hook, hook)
    return expect_handshake(row, origin=caller_origin(info))


@mutation(
    RunType,
    "Runs the script for a refused call that matches the hook's rules now.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The refused call's id."),
)
def replay_refused_call_field(info: GraphQLResolveInfo, id: str) -> Run:
    row = find(info, RefusedCall, id)
    # A slot of the sandbox limits the run instead.
    with info.context.place_left_to_others():
        return replay_refused_call(
            row,
            origin=caller_origin(info),
            by=Author(api_key=caller_key(info)),
        )


@mutation(
    RunType,
    "Runs the hook's script for a new event as its sender sends it, signed, and through the checks "
    "of any call. Its effects are real.",
    errors=script_errors,
    hook=graphene.ID(required=True, description="The HookID."),
)
def send_test_event_field(info: GraphQLResolveInfo, hook: str) -> Run:
    row = find(info, Hook, hook)
    # A slot of the sandbox limits the run instead.
    with info.context.place_left_to_others():
        return send_test_event(row, origin=caller_origin(info))


@mutation(
    graphene.String,
    "Begins to follow a hook's calls, to repeat them elsewhere, which the audit log records. "
    "Returns the cursor of `runsSince` behind all runs that have ended.",
    hook=graphene.ID(required=True, description="The HookID."),
)
def start_listening_field(info: GraphQLResolveInfo, hook: str) -> str:
    row = find(info, Hook, hook)
    cursor = end_of_feed(scoped(info, Run), "ended_in")
    record_about_hook(HookEvent.LISTENING_STARTED, row, caller_origin(info))
    return cursor
