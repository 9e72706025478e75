"""The fields of a hook that say who calls it and which calls are accepted."""

from datetime import datetime

import graphene
from graphql import GraphQLResolveInfo

from scripts_engine.flows.call_rules import rules_in_force
from scripts_engine.flows.signing_secrets import open_verify_token
from scripts_engine.graphql.senders import (
    Hmac,
    IdempotencyEnum,
    ReplyModeEnum,
    SigningSecretType,
    count_of,
    use_of,
)
from scripts_engine.models import Hook, SigningSecret


class HookRules:
    """Mixin for the type of hooks: its sender, secrets and limits, with defaults applied."""

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
    signed_url = graphene.String(
        description="The URL that the sender signs; null if it is the hook's own."
    )
    tolerance_seconds = graphene.Int(
        description="How old or early a signed time may be; null if none is signed."
    )
    event_id_pointers = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="JSON pointers (RFC 6901) to the event id in a signed body.",
    )
    allowed_networks = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="Networks of callers in CIDR notation; empty if calls may come from anywhere.",
    )
    methods = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="The methods that run the script, out of GET and POST.",
    )
    max_body_bytes = graphene.Int(required=True, description="The largest payload, in bytes.")
    idempotency = graphene.Field(
        graphene.NonNull(IdempotencyEnum),
        description="How a repeated delivery is recognised.",
    )
    idempotency_window_seconds = graphene.Int(
        required=True, description="How long a delivery is remembered."
    )
    calls_per_minute = graphene.Int(description="Verified calls a minute; null if unlimited.")
    burst = graphene.Int(description="Calls that may come at once; null if unlimited.")
    max_concurrent_runs = graphene.Int(description="Runs at the same time; null if unlimited.")
    reply_mode = graphene.Field(
        graphene.NonNull(ReplyModeEnum), description="What callers get as the reply."
    )
    accepted_status = graphene.Int(
        required=True, description="The status of the reply to a call that was queued."
    )
    max_attempts = graphene.Int(required=True, description="How often a queued run is tried.")
    call_token_last_used_at = graphene.DateTime(
        description="When the call token was last used. Counted while a rotation overlaps."
    )
    call_token_last_used_from = graphene.String(description="The client address of that call.")
    call_token_use_count = graphene.Int(
        required=True, description="Calls with the call token while a rotation overlapped."
    )
    previous_call_token_last_used_at = graphene.DateTime(
        description="When the call token before the last rotation was last used."
    )
    previous_call_token_last_used_from = graphene.String(
        description="The client address of that call."
    )
    previous_call_token_use_count = graphene.Int(
        required=True, description="Calls with that token while the rotation overlapped."
    )

    @staticmethod
    def resolve_sender(hook: Hook, info: GraphQLResolveInfo) -> str | None:
        return hook.sender or None

    @staticmethod
    def resolve_hmac(hook: Hook, info: GraphQLResolveInfo) -> Hmac | None:
        options = hook.hmac
        if options is None:
            return None
        return Hmac(
            header=options["header"],
            algorithm=options["algorithm"],
            encoding=options["encoding"],
            prefix=options["prefix"],
            template=options["template"],
            timestamp_header=options["timestampHeader"],
            id_header=options["idHeader"],
            secret_encoding=options["secretEncoding"],
        )

    @staticmethod
    def resolve_signing_secrets(hook: Hook, info: GraphQLResolveInfo) -> list[SigningSecret]:
        return [secret for secret in hook.signing_secrets.all() if secret.is_live]

    @staticmethod
    def resolve_verify_token(hook: Hook, info: GraphQLResolveInfo) -> str | None:
        ciphertext = hook.verify_token_ciphertext
        return None if ciphertext is None else open_verify_token(hook.pk, bytes(ciphertext))

    @staticmethod
    def resolve_signed_url(hook: Hook, info: GraphQLResolveInfo) -> str | None:
        return hook.signed_url or None

    @staticmethod
    def resolve_tolerance_seconds(hook: Hook, info: GraphQLResolveInfo) -> int | None:
        sender = rules_in_force(hook).sender
        return hook.tolerance_seconds if sender is None else sender.tolerance_seconds

    @staticmethod
    def resolve_event_id_pointers(hook: Hook, info: GraphQLResolveInfo) -> list[str]:
        return hook.event_id_pointers or []

    @staticmethod
    def resolve_allowed_networks(hook: Hook, info: GraphQLResolveInfo) -> list[str]:
        return list(rules_in_force(hook).allowed_networks)

    @staticmethod
    def resolve_methods(hook: Hook, info: GraphQLResolveInfo) -> list[str]:
        return list(rules_in_force(hook).methods)

    @staticmethod
    def resolve_max_body_bytes(hook: Hook, info: GraphQLResolveInfo) -> int:
        return rules_in_force(hook).max_body_bytes

    @staticmethod
    def resolve_idempotency(hook: Hook, info: GraphQLResolveInfo) -> str:
        return str(rules_in_force(hook).idempotency)

    @staticmethod
    def resolve_idempotency_window_seconds(hook: Hook, info: GraphQLResolveInfo) -> int:
        return rules_in_force(hook).idempotency_window_seconds

    @staticmethod
    def resolve_burst(hook: Hook, info: GraphQLResolveInfo) -> int | None:
        return hook.burst or rules_in_force(hook).burst or None

    @staticmethod
    def resolve_reply_mode(hook: Hook, info: GraphQLResolveInfo) -> str:
        return str(rules_in_force(hook).reply_mode)

    @staticmethod
    def resolve_accepted_status(hook: Hook, info: GraphQLResolveInfo) -> int:
        return rules_in_force(hook).accepted_status

    @staticmethod
    def resolve_max_attempts(hook: Hook, info: GraphQLResolveInfo) -> int:
        return rules_in_force(hook).max_attempts

    @staticmethod
    def resolve_call_token_last_used_at(hook: Hook, info: GraphQLResolveInfo) -> datetime | None:
        use = use_of(hook, hook.digest)
        return None if use is None else use.last_used_at

    @staticmethod
    def resolve_call_token_last_used_from(hook: Hook, info: GraphQLResolveInfo) -> str | None:
        use = use_of(hook, hook.digest)
        return None if use is None else use.last_used_from

    @staticmethod
    def resolve_call_token_use_count(hook: Hook, info: GraphQLResolveInfo) -> int:
        return count_of(use_of(hook, hook.digest))

    @staticmethod
    def resolve_previous_call_token_last_used_at(
        hook: Hook, info: GraphQLResolveInfo
    ) -> datetime | None:
        use = use_of(hook, hook.previous_digest)
        return None if use is None else use.last_used_at

    @staticmethod
    def resolve_previous_call_token_last_used_from(
        hook: Hook, info: GraphQLResolveInfo
    ) -> str | None:
        use = use_of(hook, hook.previous_digest)
        return None if use is None else use.last_used_from

    @staticmethod
    def resolve_previous_call_token_use_count(hook: Hook, info: GraphQLResolveInfo) -> int:
        return count_of(use_of(hook, hook.previous_digest))
