"""Signing secrets of hooks: set, ended, and brought by a handshake; encrypted at rest."""

import logging
import uuid
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.models import AuthEventKind, User
from accounts.models.rotating_secret import validated_overlap
from core.encryption import Cipher, DecryptionError
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.forget_call_notes import forget_secrets
from scripts_engine.flows.hook_audit import record_about_hook
from scripts_engine.flows.rule_values import invalid, preset_of
from scripts_engine.flows.rules_of_call import hmac_options
from scripts_engine.models import Hook, SigningSecret
from scripts_engine.senders import HmacOptions, InvalidSecretError, check_secret
from scripts_engine.senders.preset import Handshake

logger = logging.getLogger(__name__)

OVERLAP_SECONDS = 86_400
HANDSHAKE_EXPECTED = timedelta(minutes=10)
# Of one hook; more than its refused calls are explained by.
MAX_RETIRED_KEPT = 20

SECRETS = Cipher(b"moonhook signing secrets")
VERIFY_TOKENS = Cipher(b"moonhook verify tokens")


class _NotExpectedError(Exception):
    """The hook expects no secret, or has one."""


# --- At rest --------------------------------------------------------------------------------------


def seal_secret(hook_id: uuid.UUID, value: str) -> bytes:
    return SECRETS.encrypt(value.encode(), str(hook_id))


def seal_verify_token(hook_id: uuid.UUID, value: str) -> bytes:
    return VERIFY_TOKENS.encrypt(value.encode(), str(hook_id))


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


# --- Set and ended by administrators --------------------------------------------------------------


def locked_hook(stale: Hook) -> Hook:
    """The hook's current row, locked until the end of the transaction."""
    rows = Hook.objects.select_for_update(of=("self",)).select_related("script__organisation")
    return rows.get(pk=stale.pk)


def set_signing_secret(
    hook: Hook,
    value: str,
    *,
    overlap_seconds: int = OVERLAP_SECONDS,
    origin: Origin = NOWHERE,
    by: User | None = None,
) -> SigningSecret:
    """Sets the newest signing secret; the current one ends after the overlap, 0 to 7 days.

    An older one ends at once. Raises ``ValidationError`` by field: ``value``,
    ``overlap_seconds``, or ``hook`` if its sender takes no secret.
    """
    overlap = validated_overlap(overlap_seconds)
    with transaction.atomic():
        locked = locked_hook(hook)
        preset = preset_of(locked)
        if preset is None or not preset.takes_secret:
            raise invalid("hook", "Set a sender that has a signing secret first.")
        sealed = _sealed(locked, value)
        _retire(locked, overlap)
        secret = SigningSecret.objects.create(hook=locked, ciphertext=sealed)
        _forget_oldest(locked)
        locked.handshake_expected_until = None
        _point_at_live(locked)
    record_about_hook(AuthEventKind.SIGNING_SECRET_SET, locked, origin, by)
    return secret


def _sealed(hook: Hook, value: str) -> bytes:
    try:
        return seal_secret(hook.pk, check_secret(hook.sender, _options_of(hook), value))
    except InvalidSecretError as error:
        raise invalid("value", str(error)) from None


def _options_of(hook: Hook) -> HmacOptions | None:
    return None if hook.hmac is None else hmac_options(hook.hmac)


def _retire(hook: Hook, overlap: timedelta) -> None:
    """Ends the newest secret after the overlap, unless it ends before, and the others at once."""
    now = timezone.now()
    for number, secret in enumerate(_live(hook)):
        end = now + overlap if number == 0 else now
        secret.ends_at = end if secret.ends_at is None else min(secret.ends_at, end)
        secret.save(update_fields=["ends_at"])


def _forget_oldest(hook: Hook) -> None:
    """Keeps the newest retired secrets, so that setting one again and again fills no disk."""
    retired = SigningSecret.objects.filter(hook=hook).retired().order_by("-ends_at", "-pk")
    forget_secrets(list(retired[MAX_RETIRED_KEPT:]))


def _live(hook: Hook) -> list[SigningSecret]:
    """Newest first."""
    return list(SigningSecret.objects.filter(hook=hook).live())


def _point_at_live(hook: Hook) -> None:
    """Lets the hook's columns name its live secrets, which is where calls find them."""
    newest, previous, *_ = [*_live(hook), None, None]
    hook.signing_secret, hook.previous_signing_secret = newest, previous
    hook.save(
        update_fields=["signing_secret", "previous_signing_secret", "handshake_expected_until"]
    )


def delete_signing_secret(
    secret: SigningSecret, *, origin: Origin = NOWHERE, by: User | None = None
) -> None:
    """Ends the secret at once. For a while it still explains refused calls."""
    with transaction.atomic():
        hook = locked_hook(secret.hook)
        live = SigningSecret.objects.filter(pk=secret.pk).live()
        is_ended = bool(live.update(ends_at=timezone.now()))
        _point_at_live(hook)
    if is_ended:
        record_about_hook(AuthEventKind.SIGNING_SECRET_DELETED, hook, origin, by)


def end_secrets(hook: Hook) -> None:
    """Call it in the transaction that locks the hook."""
    SigningSecret.objects.filter(hook=hook).live().update(ends_at=timezone.now())
    _point_at_live(hook)


def end_secrets_that_do_not_fit(hook: Hook) -> None:
    """Ends the secrets that cannot be the hook's sender's. Call it like ``end_secrets``."""
    unfit = [secret.pk for secret in _live(hook) if not _fits(hook, secret)]
    SigningSecret.objects.filter(pk__in=unfit).update(ends_at=timezone.now())
    _point_at_live(hook)


def _fits(hook: Hook, secret: SigningSecret) -> bool:
    value = open_secret(hook.pk, bytes(secret.ciphertext))
    try:
        return value is not None and bool(check_secret(hook.sender, _options_of(hook), value))
    except InvalidSecretError:
        return False


# --- Brought by a handshake -----------------------------------------------------------------------


def expect_handshake(hook: Hook, *, origin: Origin = NOWHERE, by: User | None = None) -> Hook:
    """Lets the next handshake bring the signing secret, for 10 minutes. Returns the changed hook.

    Raises ``ValidationError`` if the sender's handshake brings none, or if one is set.
    """
    with transaction.atomic():
        locked = locked_hook(hook)
        preset = preset_of(locked)
        if preset is None or preset.handshake is not Handshake.ASANA:
            raise invalid("hook", "The handshake of its sender does not bring a signing secret.")
        if _live(locked):
            raise invalid("hook", "A signing secret is set. Delete it first.")
        locked.handshake_expected_until = timezone.now() + HANDSHAKE_EXPECTED
        _point_at_live(locked)
    record_about_hook(AuthEventKind.HANDSHAKE_EXPECTED, locked, origin, by)
    return locked


def store_greeted_secret(hook_id: uuid.UUID, value: str, *, origin: Origin = NOWHERE) -> bool:
    """Stores the secret that a handshake brought, if the hook expects one and has none."""
    hook = Hook.objects.select_related("script__organisation").get(pk=hook_id)
    try:
        secret = SigningSecret(
            hook=hook, ciphertext=seal_secret(hook_id, check_secret(hook.sender, None, value))
        )
        with transaction.atomic():
            secret.save()
            expecting = Hook.objects.filter(
                pk=hook_id,
                sender=hook.sender,
                signing_secret=None,
                handshake_expected_until__gt=timezone.now(),
            )
            if not expecting.update(signing_secret=secret, handshake_expected_until=None):
                raise _NotExpectedError
            _forget_oldest(hook)
    except (InvalidSecretError, _NotExpectedError):
        return False
    record_about_hook(AuthEventKind.SIGNING_SECRET_RECEIVED, hook, origin)
    return True
