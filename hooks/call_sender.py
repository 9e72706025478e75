"""The sender of a hook's calls: what it demands of them, and the secrets with which it signs."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, Self

from core.encryption import Cipher, DecryptionError
from hooks.senders import Handshake, HmacOptions, Preset, Rules, preset_with

logger = logging.getLogger(__name__)

_SECRETS = ("signing_secret", "previous_signing_secret")
# Columns of a hook that only matter if it has a sender.
DETAILS = (
    "hmac",
    "verify_token_ciphertext",
    "handshake_expected_until",
    *(f"{name}{part}" for name in _SECRETS for part in ("_id", "__ciphertext", "__ends_at")),
)


class StoredSecret(NamedTuple):
    id: uuid.UUID
    ciphertext: bytes


class CallSender(NamedTuple):
    """The sender of a hook's calls. Its secrets stay encrypted until they are needed."""

    hook_id: uuid.UUID
    rules: Rules
    """Without the verify token, which stays encrypted too."""
    verify_token_ciphertext: bytes | None
    signed_url: str
    """What the sender signs in place of the hook's URL; ``""``: the hook's URL."""
    secrets: Sequence[StoredSecret]
    """The live signing secrets, newest first; at most two."""

    @classmethod
    def of_columns(
        cls, hook_id: uuid.UUID, hook: Mapping[str, Any], now: datetime, *, allowed_rate: int | None
    ) -> Self | None:
        """``None`` if the hook has no sender."""
        if not hook["sender"]:
            return None
        options, expected_until = hook["hmac"], hook["handshake_expected_until"]
        rules = Rules(
            preset=hook["sender"],
            hmac=None if options is None else hmac_options(options),
            tolerance_seconds=hook["tolerance_seconds"],
            event_id_pointers=tuple(hook["event_id_pointers"] or ()),
            is_handshake_expected=expected_until is not None and expected_until > now,
            allowed_rate=allowed_rate,
        )
        token, url = hook["verify_token_ciphertext"], hook["signed_url"]
        return cls(hook_id, rules, token, url, _live_secrets(hook, now))

    def open_secrets(self) -> list[tuple[uuid.UUID, str]]:
        """The live signing secrets with their ids, newest first, without those of lost peppers."""
        return [
            (stored.id, secret)
            for stored in self.secrets
            if (secret := open_secret(self.hook_id, stored.ciphertext)) is not None
        ]

    def rules_with_token(self) -> Rules:
        """The rules with the verify token, if the sender has one."""
        ciphertext = self.verify_token_ciphertext
        if ciphertext is None:
            return self.rules
        return replace(self.rules, verify_token=open_verify_token(self.hook_id, ciphertext))

    @property
    def preset(self) -> Preset | None:
        return preset_with(self.rules.preset, self.rules.hmac)

    def greets_by(self, method: str) -> bool:
        """Whether the sender's handshake uses this method."""
        preset = self.preset
        if preset is None or preset.handshake is Handshake.NONE:
            return False
        return preset.handshake_method == method

    @property
    def signs_url(self) -> bool:
        preset = self.preset
        return preset is not None and "{url}" in preset.template


def _live_secrets(hook: Mapping[str, Any], now: datetime) -> Sequence[StoredSecret]:
    found = []
    for name in _SECRETS:
        ciphertext, ends_at = hook.get(f"{name}__ciphertext"), hook.get(f"{name}__ends_at")
        if ciphertext is not None and (ends_at is None or ends_at > now):
            found.append(StoredSecret(hook[f"{name}_id"], bytes(ciphertext)))
    return found


# --- At rest --------------------------------------------------------------------------------------

SECRETS = Cipher(b"moonhook signing secrets")
VERIFY_TOKENS = Cipher(b"moonhook verify tokens")
CALL_TOKENS = Cipher(b"moonhook call tokens")


def seal_secret(hook_id: uuid.UUID, value: str) -> bytes:
    return SECRETS.encrypt(value.encode(), str(hook_id))


def seal_verify_token(hook_id: uuid.UUID, value: str) -> bytes:
    return VERIFY_TOKENS.encrypt(value.encode(), str(hook_id))


def seal_call_token(hook_id: uuid.UUID, value: str) -> bytes:
    return CALL_TOKENS.encrypt(value.encode(), str(hook_id))


def open_call_token(hook_id: uuid.UUID, ciphertext: bytes) -> str | None:
    """``None`` for the same reasons as ``open_secret``."""
    return _opened(CALL_TOKENS, hook_id, ciphertext)


def open_secret(hook_id: uuid.UUID, ciphertext: bytes) -> str | None:
    """``None`` if the ciphertext belongs to another hook, or its pepper is missing."""
    return _opened(SECRETS, hook_id, ciphertext)


def open_verify_token(hook_id: uuid.UUID, ciphertext: bytes) -> str | None:
    """``None`` for the same reasons as ``open_secret``."""
    return _opened(VERIFY_TOKENS, hook_id, ciphertext)


def _opened(cipher: Cipher, hook_id: uuid.UUID, ciphertext: bytes) -> str | None:
    try:
        return cipher.decrypt(ciphertext, str(hook_id)).decode()
    except DecryptionError as error:
        logger.error("A secret of hook %s cannot be decrypted: %s", hook_id, error)  # noqa: TRY400
        return None


# --- The options of the sender ``hmac`` -----------------------------------------------------------

_DEFAULTS = {each.name: each.default for each in fields(HmacOptions)}


def api_name_of(name: str) -> str:
    """The name in GraphQL, such as ``timestampHeader``."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


@dataclass(frozen=True, slots=True, kw_only=True)
class HmacOption:
    """One option, for what stores, checks, shows and takes it."""

    name: str
    """The field of ``HmacOptions``."""
    shown: str
    """The description of the GraphQL field."""
    given: str
    """The description of the GraphQL argument."""
    label: str
    help: str = ""
    """Of the form's field."""
    enum: str = ""
    """The GraphQL enum of its values; empty for a text."""
    choices: tuple[tuple[str, str], ...] = ()
    """The values of an enum with their labels, the default first."""

    @property
    def api_name(self) -> str:
        """The name in the column, in GraphQL and in forms."""
        return api_name_of(self.name)

    @property
    def is_required(self) -> bool:
        return _DEFAULTS[self.name] is MISSING

    @property
    def is_nullable(self) -> bool:
        return _DEFAULTS[self.name] is None


OPTIONS = (
    HmacOption(
        name="header",
        shown="The header with the signature.",
        given="The header with the signature.",
        label="Header",
        help="Holds the signature, for example X-Signature.",
    ),
    HmacOption(
        name="prefix",
        shown="Text before the signature.",
        given="Text before the signature, for example `sha256=`.",
        label="Prefix",
        help="Stands before the signature, for example sha256=. May be empty.",
    ),
    HmacOption(
        name="algorithm",
        shown="The hash function.",
        given="Sha256 if not given.",
        label="Algorithm",
        enum="HmacAlgorithm",
        choices=(("sha256", "SHA-256"), ("sha512", "SHA-512"), ("sha1", "SHA-1")),
    ),
    HmacOption(
        name="encoding",
        shown="How it is written.",
        given="Hex if not given.",
        label="Encoding",
        enum="HmacEncoding",
        choices=(("hex", "Hex"), ("base64", "Base64")),
    ),
    HmacOption(
        name="template",
        shown="What is signed.",
        given="What is signed: `{body}` exactly once, and `{timestamp}`, `{id}`, `{method}`, "
        "`{url}`, with text between them where nothing else says where one ends. `{body}` if not "
        "given.",
        label="Signed text",
        help="{body} exactly once; also {timestamp}, {id}, {method} and {url}. Empty: {body}.",
    ),
    HmacOption(
        name="timestamp_header",
        shown="The header with the time.",
        given="The header with the time, in epoch seconds.",
        label="Time header",
        help="Holds {timestamp}, in seconds. May be empty.",
    ),
    HmacOption(
        name="id_header",
        shown="The header with the event id.",
        given="The header with the event id.",
        label="Id header",
        help="Holds {id}, the id of the event. May be empty.",
    ),
    HmacOption(
        name="secret_encoding",
        shown="How the signing secret is written.",
        given="Text if not given.",
        label="Secret",
        enum="SecretEncoding",
        choices=(("text", "As text"), ("base64", "Base64"), ("hex", "Hex")),
    ),
)
_NAMES = {option.api_name: option.name for option in OPTIONS}


def hmac_options(column: Mapping[str, str]) -> HmacOptions:
    """The options as the column of a hook holds them, under their API names."""
    return HmacOptions(
        **{_NAMES[name]: value for name, value in column.items() if value is not None}
    )


def are_known(names: set[str]) -> bool:
    """Whether all are API names of options."""
    return names <= _NAMES.keys()


def column_of(options: HmacOptions) -> dict[str, str | None]:
    """What a hook stores."""
    return {api_name: getattr(options, name) for api_name, name in _NAMES.items()}
