"""GraphQL types of senders, of the signatures that they make, and of their secrets."""

from collections.abc import Callable
from datetime import datetime
from enum import Enum

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from scripts_engine.models import CredentialUse, Hook, SigningSecret
from scripts_engine.models.call_rules import Idempotency, ReplyMode
from scripts_engine.senders import Preset, Strength
from scripts_engine.senders.preset import Handshake


class StrengthEnum(graphene.Enum):
    """How much a verified call proves."""

    class Meta:
        name = "Strength"

    Signed = Strength.SIGNED.value
    BodyUnsigned = Strength.BODY_UNSIGNED.value
    SharedSecret = Strength.SHARED_SECRET.value
    HandshakeOnly = Strength.HANDSHAKE_ONLY.value

    @property
    def description(self) -> str:
        return {
            Strength.SIGNED.value: "The sender signs the body.",
            Strength.BODY_UNSIGNED.value: "The sender signs the call, but not its body.",
            Strength.SHARED_SECRET.value: "The sender sends a secret and signs nothing.",
            Strength.HANDSHAKE_ONLY.value: "The sender asks for permission and proves nothing.",
        }[self.value]


def _described(texts: dict[str, str], whole: str) -> Callable[[Enum | None], str]:
    """Descriptions of an enum's values, and of the enum."""
    return lambda member: whole if member is None else texts[member.value]


# By call, because ``None`` cannot be the name of a class attribute.
IdempotencyEnum = graphene.Enum(
    "Idempotency",
    [
        ("None", Idempotency.NONE.value),
        ("EventId", Idempotency.EVENT_ID.value),
        ("BodyHash", Idempotency.BODY_HASH.value),
    ],
    description=_described(
        {
            Idempotency.NONE.value: "Every delivery runs the script.",
            Idempotency.EVENT_ID.value: "By the event id in signed material.",
            Idempotency.BODY_HASH.value: "By the call: equal methods, paths, queries and "
            "payloads are one event. Not for `GET` without a sender.",
        },
        "How a repeated delivery is recognised.",
    ),
)


class ReplyModeEnum(graphene.Enum):
    """What the callers of a hook get as the reply."""

    class Meta:
        name = "ReplyMode"

    Script = ReplyMode.SCRIPT.value
    Accepted = ReplyMode.ACCEPTED.value

    @property
    def description(self) -> str:
        return {
            ReplyMode.SCRIPT.value: "The script's reply, for which they wait.",
            ReplyMode.ACCEPTED.value: "The run's id, as soon as the run is queued.",
        }[self.value]


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


class HmacInput(graphene.InputObjectType):
    """How the signature of the sender `hmac` is made."""

    header = graphene.String(required=True, description="The header with the signature.")
    algorithm = HmacAlgorithm(description="Sha256 if not given.")
    encoding = HmacEncoding(description="Hex if not given.")
    prefix = graphene.String(description="Text before the signature, for example `sha256=`.")
    template = graphene.String(
        description="What is signed: `{body}` exactly once, and `{timestamp}`, `{id}`, `{method}`, "
        "`{url}`, with text between them where nothing else says where one ends. `{body}` if not "
        "given."
    )
    timestamp_header = graphene.String(description="The header with the time, in epoch seconds.")
    id_header = graphene.String(description="The header with the event id.")
    secret_encoding = SecretEncoding(description="Text if not given.")


class Hmac(graphene.ObjectType):
    """How the signature of the sender `hmac` is made."""

    header = graphene.String(required=True, description="The header with the signature.")
    algorithm = graphene.Field(graphene.NonNull(HmacAlgorithm), description="The hash function.")
    encoding = graphene.Field(graphene.NonNull(HmacEncoding), description="How it is written.")
    prefix = graphene.String(required=True, description="Text before the signature.")
    template = graphene.String(required=True, description="What is signed.")
    timestamp_header = graphene.String(description="The header with the time.")
    id_header = graphene.String(description="The header with the event id.")
    secret_encoding = graphene.Field(
        graphene.NonNull(SecretEncoding), description="How the signing secret is written."
    )


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


class SigningSecretType(DjangoObjectType):
    """A secret with which a sender signs calls of a hook. Its value is never shown."""

    class Meta:
        name = "SigningSecret"
        model = SigningSecret
        skip_registry = True
        fields = ("created_at", "ends_at")

    id = graphene.ID(required=True, description="The secret's id.")
    last_used_at = graphene.DateTime(description="When it last matched a call; null if never.")
    last_used_from = graphene.String(description="The client address of that call.")
    use_count = graphene.Int(required=True, description="How many calls it matched.")

    @staticmethod
    def resolve_last_used_at(secret: SigningSecret, info: GraphQLResolveInfo) -> datetime | None:
        use = use_of(secret.hook, str(secret.pk))
        return None if use is None else use.last_used_at

    @staticmethod
    def resolve_last_used_from(secret: SigningSecret, info: GraphQLResolveInfo) -> str | None:
        use = use_of(secret.hook, str(secret.pk))
        return None if use is None else use.last_used_from

    @staticmethod
    def resolve_use_count(secret: SigningSecret, info: GraphQLResolveInfo) -> int:
        return count_of(use_of(secret.hook, str(secret.pk)))


# The largest Int of GraphQL.
_LARGEST_INT = 2**31 - 1


def use_of(hook: Hook, credential: str) -> CredentialUse | None:
    """``credential`` is the digest of a call token or the id of a signing secret."""
    uses = {use.credential: use for use in hook.credential_uses.all()}
    return uses.get(credential) if credential else None


def count_of(use: CredentialUse | None) -> int:
    return 0 if use is None else min(use.count, _LARGEST_INT)
