"""GraphQL types of senders, of the signatures that they make, and of their secrets."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from core.graphql.enums import described_enum
from hooks.call_sender import OPTIONS, HmacOption
from hooks.models import CredentialUse, Hook, Idempotency, ReplyMode, SigningSecret
from hooks.senders import Handshake, Preset, Strength

StrengthEnum = described_enum(
    "Strength",
    "How much a verified call proves.",
    {
        Strength.SIGNED: "The sender signs the body.",
        Strength.BODY_UNSIGNED: "The sender signs the call, but not its body.",
        Strength.SHARED_SECRET: "The sender sends a secret and signs nothing.",
        Strength.HANDSHAKE_ONLY: "The sender asks for permission and proves nothing.",
    },
)


IdempotencyEnum = described_enum(
    "Idempotency",
    "How a repeated delivery is recognised.",
    {
        Idempotency.NONE: "Every delivery runs the script.",
        Idempotency.EVENT_ID: "By the event id in signed material.",
        Idempotency.BODY_HASH: "By the call: equal methods, paths, queries and "
        "payloads are one event. Not for `GET` without a sender.",
    },
)
ReplyModeEnum = described_enum(
    "ReplyMode",
    "What the callers of a hook get as the reply.",
    {
        ReplyMode.SCRIPT: "The script's reply, for which they wait.",
        ReplyMode.ACCEPTED: "The run's id, as soon as the run is queued.",
    },
)


class HmacAlgorithm(graphene.Enum):
    """The hash function of an HMAC."""

    Sha1 = "sha1"
    Sha256 = "sha256"
    Sha512 = "sha512"


class HmacEncoding(graphene.Enum):
    """How a signature is written."""

    Hex = "hex"
    Base64 = "base64"


class SecretEncoding(graphene.Enum):
    """How a signing secret is written."""

    Text = "text"
    Base64 = "base64"
    Hex = "hex"


_ENUMS = {each._meta.name: each for each in (HmacAlgorithm, HmacEncoding, SecretEncoding)}
_OF_HMAC = "How the signature of the sender `hmac` is made."


def _type_of(option: HmacOption) -> Any:
    return _ENUMS[option.enum] if option.enum else graphene.String


Hmac: Any = type(
    "Hmac",
    (graphene.ObjectType,),
    {
        "__doc__": _OF_HMAC,
        **{
            option.name: graphene.Field(
                _type_of(option), required=not option.is_nullable, description=option.shown
            )
            for option in OPTIONS
        },
    },
)
HmacInput: Any = type(
    "HmacInput",
    (graphene.InputObjectType,),
    {
        "__doc__": _OF_HMAC,
        **{
            option.name: graphene.InputField(
                _type_of(option), required=option.is_required, description=option.given
            )
            for option in OPTIONS
        },
    },
)


def shown_hmac(column: Mapping[str, Any]) -> graphene.ObjectType:
    """``column`` holds the options under their API names."""
    return Hmac(**{option.name: column[option.api_name] for option in OPTIONS})


def given_hmac(given: Mapping[str, Enum | str | None]) -> dict[str, str | None]:
    """The options of an ``HmacInput`` under their API names."""
    return {
        option.api_name: _text(given[option.name]) for option in OPTIONS if option.name in given
    }


def _text(value: Enum | str | None) -> str | None:
    return str(value.value) if isinstance(value, Enum) else value


class SenderType(graphene.ObjectType):
    """A sender whose calls can be verified."""

    class Meta:
        name = "Sender"

    name = graphene.String(required=True, description="The value of `setSender`.")
    title = graphene.String(required=True, description="The sender's name.")
    strength = graphene.Field(
        graphene.NonNull(StrengthEnum), description="How much a verified call proves."
    )
    takes_secret = graphene.Boolean(
        required=True, description="Whether its calls need a signing secret."
    )
    handshake = graphene.Boolean(
        required=True,
        description="Whether it asks if the hook is its own. Moonhook answers without a run.",
    )
    handshake_method = graphene.String(description="The method of its handshake, if it has one.")
    handshake_brings_secret = graphene.Boolean(
        required=True, description="Whether its first handshake brings the signing secret."
    )
    tolerance_seconds = graphene.Int(
        description="How old or early a signed time may be; null if it signs no time."
    )
    has_event_id = graphene.Boolean(required=True, description="Whether it signs an event id.")
    event_id_place = graphene.String(description="Where that event id is.")
    takes_event_id_pointers = graphene.Boolean(
        required=True, description="Whether `eventIdPointers` may find an event id in its body."
    )
    refuses_body_hash = graphene.Boolean(
        required=True, description="Whether `BodyHash` is refused, because of what its bodies say."
    )
    accepted_status = graphene.Int(
        required=True, description="The status with which it takes a call for accepted."
    )
    retries = graphene.String(required=True, description="When it sends a call again.")
    patience_seconds = graphene.Int(
        description="How long it waits for the answer, in s; null if it does not say."
    )
    steps = graphene.List(
        graphene.NonNull(graphene.String), required=True, description="How to set it up."
    )
    documentation = graphene.String(
        required=True, description="The page of its documentation that describes this."
    )

    @staticmethod
    def resolve_handshake(preset: Preset, info: GraphQLResolveInfo) -> bool:
        return preset.handshake is not Handshake.NONE

    @staticmethod
    def resolve_handshake_method(preset: Preset, info: GraphQLResolveInfo) -> str | None:
        return None if preset.handshake is Handshake.NONE else preset.handshake_method

    @staticmethod
    def resolve_handshake_brings_secret(preset: Preset, info: GraphQLResolveInfo) -> bool:
        return preset.handshake is Handshake.ASANA

    @staticmethod
    def resolve_strength(preset: Preset, info: GraphQLResolveInfo) -> str:
        return preset.strength.value

    @staticmethod
    def resolve_event_id_place(preset: Preset, info: GraphQLResolveInfo) -> str | None:
        return preset.event_id_place or None

    @staticmethod
    def resolve_takes_event_id_pointers(preset: Preset, info: GraphQLResolveInfo) -> bool:
        return preset.takes_pointers

    @staticmethod
    def resolve_documentation(preset: Preset, info: GraphQLResolveInfo) -> str:
        return preset.page


# The largest Int of GraphQL.
_LARGEST_INT = 2**31 - 1


class UseFields(NamedTuple):
    """Fields of the evidence that a credential of a hook is in use."""

    last_used_at: graphene.Field
    last_used_from: graphene.Field
    use_count: graphene.Field


def use_fields(
    find: Callable[[Any], tuple[Hook, str]], *, last_used: str, last_used_from: str, count: str
) -> UseFields:
    """``find`` returns the hook, and the digest of its call token or the id of its secret."""

    def use_of(row: Any) -> CredentialUse | None:
        hook, credential = find(row)
        uses = {use.credential: use for use in hook.credential_uses.all()}
        return uses.get(credential) if credential else None

    def resolve_last_used_at(row: Any, info: GraphQLResolveInfo) -> datetime | None:
        use = use_of(row)
        return None if use is None else use.last_used_at

    def resolve_last_used_from(row: Any, info: GraphQLResolveInfo) -> str | None:
        use = use_of(row)
        return None if use is None else use.last_used_from

    def resolve_use_count(row: Any, info: GraphQLResolveInfo) -> int:
        use = use_of(row)
        return 0 if use is None else min(use.count, _LARGEST_INT)

    return UseFields(
        graphene.DateTime(description=last_used, resolver=resolve_last_used_at),
        graphene.String(description=last_used_from, resolver=resolve_last_used_from),
        graphene.Int(required=True, description=count, resolver=resolve_use_count),
    )


class SigningSecretType(DjangoObjectType):
    """A secret with which a sender signs calls of a hook. Its value is never shown."""

    class Meta:
        name = "SigningSecret"
        model = SigningSecret
        skip_registry = True
        fields = ("created_at", "ends_at")

    id = graphene.ID(required=True, description="The secret's id.")
    last_used_at, last_used_from, use_count = use_fields(
        lambda secret: (secret.hook, str(secret.pk)),
        last_used="When it last matched a call; null if never.",
        last_used_from="The client address of that call.",
        count="How many calls it matched.",
    )
