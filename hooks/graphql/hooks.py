"""GraphQL types and queries of hooks with their rules, and the hook of a run."""

from collections.abc import Callable, Iterable
from typing import Any

import graphene
from django.db.models import Prefetch, TextChoices, prefetch_related_objects
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation, find, scoped
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.resolving import extend, peers_of
from hooks.call_sender import open_verify_token
from hooks.flows.hooks import hooks_by_id
from hooks.graphql.senders import (
    Hmac,
    IdempotencyEnum,
    ReplyModeEnum,
    SigningSecretType,
    shown_hmac,
    use_fields,
)
from hooks.models import Hook, Idempotency, ReplyMode, SigningSecret
from hooks.rules import RULES, HookRule, value_in_force
from scripts_engine.graphql.types import RunType, ScriptType, ScriptVersionType
from scripts_engine.graphql.usage import UsageType
from scripts_engine.models import DailyUsage, Run, Script, ScriptVersion

_TYPES: dict[Any, Any] = {
    int: graphene.Int,
    bool: graphene.Boolean,
    str: graphene.String,
    list: graphene.List(graphene.NonNull(graphene.String)),
    Idempotency: IdempotencyEnum,
    ReplyMode: ReplyModeEnum,
}


def _field_of(rule: HookRule) -> graphene.Field:
    return graphene.Field(
        _TYPES[rule.kind],
        required=not rule.is_nullable,
        description=rule.shown,
        resolver=_resolver_of(rule),
    )


def _resolver_of(rule: HookRule) -> Callable[[Hook, GraphQLResolveInfo], Any]:
    def resolve(hook: Hook, info: GraphQLResolveInfo) -> Any:
        value = value_in_force(rule, hook)
        return str(value) if issubclass(rule.kind, TextChoices) else value

    return resolve


def arguments_of(rules: Iterable[HookRule]) -> dict[str, graphene.Argument]:
    """The arguments of mutations that set these rules."""
    return {
        rule.name: graphene.Argument(_TYPES[rule.kind], description=rule.given or rule.shown)
        for rule in rules
    }


# Mixin for the type of hooks: its rules, with defaults applied.
RuleFields: Any = type("RuleFields", (), {rule.name: _field_of(rule) for rule in RULES})


class SenderFields:
    """Mixin for the type of hooks: its sender and secrets, and the use of its call tokens."""

    sender = graphene.String(description="Who calls, out of `senders`; null if anyone may.")
    hmac = graphene.Field(Hmac, description="How the signature of the sender `hmac` is made.")
    signing_secrets = graphene.List(
        graphene.NonNull(SigningSecretType),
        required=True,
        description="The secrets whose signatures are accepted, newest first; at most two.",
    )
    verify_token = graphene.String(
        description="The token that the sender's handshake must bring. Enter it at the sender."
    )
    handshake_expected_until = graphene.DateTime(
        description="Until then, a first handshake may bring the signing secret."
    )
    call_token_last_used_at, call_token_last_used_from, call_token_use_count = use_fields(
        lambda hook: (hook, hook.digest),
        last_used="When the call token was last used. Counted while a rotation overlaps.",
        last_used_from="The client address of that call.",
        count="Calls with the call token while a rotation overlapped.",
    )
    (
        previous_call_token_last_used_at,
        previous_call_token_last_used_from,
        previous_call_token_use_count,
    ) = use_fields(
        lambda hook: (hook, hook.previous_digest),
        last_used="When the call token before the last rotation was last used.",
        last_used_from="The client address of that call.",
        count="Calls with that token while the rotation overlapped.",
    )

    needs_rotation = graphene.Boolean(
        required=True,
        description="Whether the call token should be rotated: it was kept while a sender signed "
        "the calls, so that the URL could be shown again, and now runs the script by itself.",
    )

    @staticmethod
    def resolve_sender(hook: Hook, info: GraphQLResolveInfo) -> str | None:
        return hook.sender or None

    @staticmethod
    def resolve_hmac(hook: Hook, info: GraphQLResolveInfo) -> graphene.ObjectType | None:
        return None if hook.hmac is None else shown_hmac(hook.hmac)

    @staticmethod
    def resolve_signing_secrets(hook: Hook, info: GraphQLResolveInfo) -> list[SigningSecret]:
        return [secret for secret in hook.signing_secrets.all() if secret.is_live]

    @staticmethod
    def resolve_verify_token(hook: Hook, info: GraphQLResolveInfo) -> str | None:
        ciphertext = hook.verify_token_ciphertext
        return None if ciphertext is None else open_verify_token(hook.pk, bytes(ciphertext))


# --- Hooks ----------------------------------------------------------------------------------------


_LOADED = "_hook_of_run"
_HOOKS = "_newest_hooks"
MAX_HOOKS_OF_SCRIPT = 100


class HookType(SenderFields, RuleFields, DjangoObjectType):
    """A webhook that runs a script."""

    class Meta:
        name = "Hook"
        model = Hook
        skip_registry = True
        fields = ("name", "created_at", "previous_valid_until", "revision")

    id = graphene.ID(required=True, description="The HookID.")
    enabled = graphene.Boolean(required=True, description="Whether the hook accepts calls.")
    script = graphene.Field(
        graphene.NonNull(ScriptType), description="The script that the hook runs."
    )
    pinned = graphene.Field(
        ScriptVersionType, description="The version that it runs; null if it runs the live one."
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
    def resolve_pinned(hook: Hook, info: GraphQLResolveInfo) -> ScriptVersion | None:
        version: ScriptVersion | None = hook.pinned_version
        if version is not None:
            version.script = hook.script
        return version

    @staticmethod
    def resolve_url(hook: Hook, info: GraphQLResolveInfo) -> str:
        return getattr(hook, "url_just_issued", hook.url)


class IssuedHookType(graphene.ObjectType):
    """A hook and its new call token, which is shown only here."""

    class Meta:
        name = "IssuedHook"

    hook = graphene.Field(graphene.NonNull(HookType), description="The hook.")
    call_token = graphene.String(required=True, description="Store it: it is not shown again.")


HookConnection = connection_of(HookType)


class HooksQuery(graphene.ObjectType):
    hooks = connection_field(
        HookConnection,
        "The hooks of the organisation's scripts.",
        script=graphene.ID(description="Only hooks of this script."),
    )

    @staticmethod
    def resolve_hooks(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        script: str | None = None,
    ) -> Page:
        rows = scoped(info, Hook).select_related("script__current_version", "pinned_version")
        rows = rows.prefetch_related("signing_secrets", "credential_uses")
        if script is not None:
            rows = rows.filter(script=find(info, Script, script))
        return page_of(info, rows, first, after)


@extend(ScriptType)
class CalledScript:
    hooks = graphene.List(
        graphene.NonNull(HookType),
        required=True,
        description=f"The script's hooks, newest first; at most {MAX_HOOKS_OF_SCRIPT}.",
    )

    @staticmethod
    def resolve_hooks(script: Script, info: GraphQLResolveInfo) -> list[Hook]:
        """Loads the hooks of all scripts that were loaded with this one."""
        if not hasattr(script, _HOOKS):
            peers = peers_of(script)
            hooks = scoped(info, Hook).select_related("pinned_version")
            hooks = hooks.prefetch_related("signing_secrets", "credential_uses")
            newest = Prefetch("hooks", hooks[:MAX_HOOKS_OF_SCRIPT], to_attr=_HOOKS)
            prefetch_related_objects(peers, newest)
        found: list[Hook] = getattr(script, _HOOKS)
        return found


@extend(UsageType)
class UsageOfHook:
    hook = graphene.Field(
        HookType,
        description="The hook, also a deleted one. Null: there is none, or nothing of it is kept.",
    )

    @staticmethod
    def resolve_hook(row: DailyUsage, info: GraphQLResolveInfo) -> Hook | None:
        """Loads the hooks of all rows that were loaded with this one."""
        if not hasattr(row, _LOADED):
            peers = peers_of(row)
            hooks = hooks_by_id(caller_organisation(info), {peer.hook_id for peer in peers})
            for peer in peers:
                setattr(peer, _LOADED, hooks.get(peer.hook_id))
        hook: Hook | None = getattr(row, _LOADED)
        return hook


@extend(RunType)
class CalledRun:
    hook = graphene.Field(HookType, description="The hook that was called, if any.")

    @staticmethod
    def resolve_hook(run: Run, info: GraphQLResolveInfo) -> Hook | None:
        """Loads the hooks of all runs that were loaded with this one."""
        if run.hook_id is None:
            return None
        if not hasattr(run, _LOADED):
            peers = peers_of(run)
            wanted = {peer.hook_id for peer in peers if peer.hook_id is not None}
            hooks = hooks_by_id(caller_organisation(info), wanted)
            for peer in peers:
                setattr(peer, _LOADED, hooks.get(peer.hook_id) if peer.hook_id else None)
        hook: Hook | None = getattr(run, _LOADED)
        if hook is not None:
            hook.script = run.script
        return hook
