"""Sets who calls a hook, and the secrets with which the sender signs."""

import secrets
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts.audit import STRANGER
from accounts.models import User
from accounts.models.rotating_secret import validated_overlap
from core.http.origin import NOWHERE, Origin
from hooks.audit_kinds import HookEvent
from hooks.call_sender import (
    are_known,
    column_of,
    hmac_options,
    open_secret,
    seal_secret,
    seal_verify_token,
)
from hooks.flows.hooks import DEFAULT_NAME, issue_new, record_about_hook
from hooks.flows.saving import changing_hook, forget_call_token, locked_hooks
from hooks.models import CredentialUse, Hook, SigningSecret
from hooks.rule_values import invalid, misfits, preset_of
from hooks.senders import (
    PRESETS,
    Handshake,
    HmacOptions,
    InvalidOptionError,
    InvalidSecretError,
    check_hmac,
    check_secret,
)
from scripts_engine.models import Script

_VERIFY_TOKEN_BYTES = 24
_SIGNING_SECRET_BYTES = 32


class IssuedWithSender(NamedTuple):
    hook: Hook
    call_token: str
    signing_secret: str | None
    """``None`` if the sender makes its own, or has none."""


@transaction.atomic
def issue_hook_with_sender(
    script: Script,
    *,
    sender: str,
    hmac: Mapping[str, str | None] | None = None,
    name: str = "",
    origin: Origin = NOWHERE,
    by: User | None = None,
) -> IssuedWithSender:
    """Creates a hook that ``sender`` calls, with a signing secret if we may choose it.

    Only the return value contains the token and the secret. Without a name, the hook gets a free
    one after the sender. Raises what ``set_sender`` and ``issue_hook`` do.
    """
    options = checked_options(sender, hmac)
    preset = PRESETS[sender]
    new = Hook(script=script, name=name)
    turn_to(new, sender, options)
    default_name = DEFAULT_NAME if sender == "hmac" else preset.title
    hook, call_token = issue_new(new, default_name=default_name, origin=origin)
    value = secrets.token_hex(_SIGNING_SECRET_BYTES) if preset.takes_any_secret else None
    if value is not None:
        set_signing_secret(hook, value, origin=origin, by=by)
        hook.refresh_from_db()
    return IssuedWithSender(hook, call_token, value)


def set_sender(
    hook: Hook,
    *,
    sender: str | None,
    hmac: Mapping[str, str | None] | None = None,
    origin: Origin = NOWHERE,
    expected_revision: int | None = None,
) -> Hook:
    """Sets the sender, a key of ``PRESETS``, or removes it. Returns the changed hook.

    ``hmac`` holds options by their API names, for the sender ``hmac`` and no other; null values
    stand for defaults. Rules that do not fit the sender are reset, and signing secrets that do not
    fit it end. A hook that compares the bodies of GET keeps its sender. Raises what
    ``changing_hook`` does.
    """
    options = checked_options(sender, hmac)
    with changing_hook(hook, origin, expected_revision=expected_revision) as changed:
        turn_to(changed, sender, options)
        end_unfit_secrets([changed])
    return changed


def checked_options(
    sender: str | None, hmac: Mapping[str, str | None] | None
) -> dict[str, str | None] | None:
    """The options to store. Raises ``ValidationError`` by field."""
    if sender is not None and sender not in PRESETS:
        raise invalid("sender", f"There is no such sender.{_meant(sender)}")
    if (hmac is not None) != (sender == "hmac"):
        raise invalid("hmac", "The sender “hmac” needs these options, and no other has them.")
    if hmac is None:
        return None
    if not are_known(set(hmac)) or not hmac.get("header"):
        raise invalid("header", "Enter the name of a header.")
    given = {name: value for name, value in hmac.items() if value is not None}
    given = {name: value for name, value in given.items() if value or not name.endswith("Header")}
    if not all(isinstance(value, str) for value in given.values()):
        raise invalid("hmac", "Each option is text.")
    options = hmac_options(given)
    try:
        check_hmac(options)
    except InvalidOptionError as error:
        raise invalid(error.field, str(error)) from None
    return column_of(options)


def _meant(sender: str) -> str:
    """A sentence with the most similar sender, after a space; empty if none is similar."""
    similar = get_close_matches(sender[:100].lower(), PRESETS, 1)
    return f" Did you mean {similar[0]}?" if similar else " The query `senders` lists them."


def turn_to(hook: Hook, sender: str | None, options: dict[str, str | None] | None) -> None:
    """Sets the columns of a checked sender, or removes the sender; saves nothing.

    ``methods`` is kept where there is no sender: it restricts the calls of any.
    """
    preset = None if sender is None else PRESETS[sender]
    if preset is not None and not hook.sender and hook.methods is None:
        hook.methods = list(preset.methods)
    if hook.sender != (sender or ""):
        hook.event_id_pointers = None
        hook.handshake_expected_until = None
    hook.sender, hook.hmac = sender or "", options
    if preset is None:
        hook.signed_url, hook.tolerance_seconds = "", None
    _reset_misfits(hook)
    forget_call_token(hook)
    if preset is None or preset.handshake is not Handshake.META:
        hook.verify_token_ciphertext = None
    elif hook.verify_token_ciphertext is None:
        token = secrets.token_urlsafe(_VERIFY_TOKEN_BYTES)
        hook.verify_token_ciphertext = seal_verify_token(hook.pk, token)


def _reset_misfits(hook: Hook) -> None:
    while found := misfits(hook):
        for name in found:
            setattr(hook, name, "" if name == "idempotency" else None)


OVERLAP_SECONDS = 86_400
HANDSHAKE_EXPECTED = timedelta(minutes=10)
# Of one hook; more than its refused calls are explained by.
MAX_RETIRED_KEPT = 20


class _NotExpectedError(Exception):
    """The hook expects no secret, or has one."""


# --- Set and ended by administrators --------------------------------------------------------------


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
        locked = _locked(hook)
        preset = preset_of(locked)
        if preset is None or not preset.takes_secret:
            raise invalid("hook", "Set a sender that has a signing secret first.")
        sealed = _sealed(locked, value)
        _retire(locked, overlap)
        secret = SigningSecret.objects.create(hook=locked, ciphertext=sealed)
        _forget_oldest(locked)
        locked.handshake_expected_until = None
        _point_at_live(locked)
    record_about_hook(HookEvent.SIGNING_SECRET_SET, locked, origin, by)
    return secret


def _locked(hook: Hook) -> Hook:
    return locked_hooks(hook.organisation, [hook.pk]).get()


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


@transaction.atomic
def forget_secrets(secrets: list[SigningSecret]) -> int:
    """Deletes the secrets with the evidence of their use. Returns their number."""
    CredentialUse.objects.filter(
        hook__in={secret.hook_id for secret in secrets},
        credential__in=[str(secret.pk) for secret in secrets],
    ).delete()
    SigningSecret.objects.filter(pk__in=[secret.pk for secret in secrets]).delete()
    return len(secrets)


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
        hook = _locked(secret.hook)
        live = SigningSecret.objects.filter(pk=secret.pk).live()
        is_ended = bool(live.update(ends_at=timezone.now()))
        _point_at_live(hook)
    if is_ended:
        record_about_hook(HookEvent.SIGNING_SECRET_DELETED, hook, origin, by)


def end_unfit_secrets(hooks: Sequence[Hook]) -> None:
    """Ends the live secrets that cannot be their hooks' senders'.

    Call it in the transaction that locks the hooks. Takes a fixed number of statements.
    """
    live = defaultdict(list)
    for secret in SigningSecret.objects.filter(hook__in=hooks).live():
        live[secret.hook_id].append(secret)
    ended = {secret.pk for hook in hooks for secret in live[hook.pk] if not _fits(hook, secret)}
    if not ended:
        return
    SigningSecret.objects.filter(pk__in=ended).update(ends_at=timezone.now())
    for hook in hooks:
        kept = [secret for secret in live[hook.pk] if secret.pk not in ended]
        hook.signing_secret, hook.previous_signing_secret, *_ = [*kept, None, None]
    Hook.objects.bulk_update(hooks, ["signing_secret", "previous_signing_secret"])


def _fits(hook: Hook, secret: SigningSecret) -> bool:
    value = open_secret(hook.pk, bytes(secret.ciphertext)) if hook.sender else None
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
        locked = _locked(hook)
        preset = preset_of(locked)
        if preset is None or preset.handshake is not Handshake.ASANA:
            raise invalid("hook", "The handshake of its sender does not bring a signing secret.")
        if _live(locked):
            raise invalid("hook", "A signing secret is set. Delete it first.")
        locked.handshake_expected_until = timezone.now() + HANDSHAKE_EXPECTED
        _point_at_live(locked)
    record_about_hook(HookEvent.HANDSHAKE_EXPECTED, locked, origin, by)
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
    # The caller has not proved who it is.
    record_about_hook(HookEvent.SIGNING_SECRET_RECEIVED, hook, replace(origin, actor=STRANGER))
    return True
