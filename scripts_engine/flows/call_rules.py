"""Sets who calls a hook, and tells which rules its calls meet."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import AuthEventKind, User
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.hook_audit import record_about_hook
from scripts_engine.flows.rule_values import check_bodies_differ, invalid, misfits, preset_of
from scripts_engine.flows.rules_of_call import (
    CONDITIONS,
    DETAILS,
    CallRules,
    hmac_options,
    rules_of_columns,
)
from scripts_engine.flows.signing_secrets import (
    end_secrets,
    end_secrets_that_do_not_fit,
    locked_hook,
    seal_verify_token,
)
from scripts_engine.models import Hook
from scripts_engine.senders import PRESETS, HmacOptions, InvalidOptionError, Preset, check_hmac
from scripts_engine.senders.preset import Handshake

# The options of the sender ``hmac`` under their API names.
HMAC_OPTIONS = (
    "header",
    "algorithm",
    "encoding",
    "prefix",
    "template",
    "timestampHeader",
    "idHeader",
    "secretEncoding",
)
_VERIFY_TOKEN_BYTES = 24
_OF_THE_SENDER = (
    "sender",
    "hmac",
    "event_id_pointers",
    "verify_token_ciphertext",
    "handshake_expected_until",
    "signed_url",
    "tolerance_seconds",
    "idempotency",
    "methods",
)


def set_sender(
    hook: Hook,
    *,
    sender: str | None,
    hmac: Mapping[str, str | None] | None = None,
    origin: Origin = NOWHERE,
    by: User | None = None,
) -> Hook:
    """Sets the sender, a key of ``PRESETS``, or removes it. Returns the changed hook.

    ``hmac`` holds ``HMAC_OPTIONS`` with values as in ``HmacOptions``, for the sender ``hmac`` and
    no other; null values stand for defaults. Rules that do not fit the sender are reset, and
    signing secrets that do not fit it end. A hook that compares the bodies of GET keeps its sender.
    Raises ``ValidationError`` by field.
    """
    options = _checked(sender, hmac)
    with transaction.atomic():
        changed = locked_hook(hook)
        if sender is None:
            had_sender = bool(changed.sender)
            _remove(changed)
        else:
            _set(changed, PRESETS[sender], options)
        changed.save(update_fields=_OF_THE_SENDER)
    if sender is not None:
        record_about_hook(AuthEventKind.SENDER_SET, changed, origin, by, sender)
    elif had_sender:
        record_about_hook(AuthEventKind.SENDER_REMOVED, changed, origin, by)
    return changed


def _checked(
    sender: str | None, hmac: Mapping[str, str | None] | None
) -> dict[str, str | None] | None:
    """The options to store. Raises ``ValidationError`` by field."""
    if sender is not None and sender not in PRESETS:
        raise invalid("sender", "There is no such sender.")
    if (hmac is not None) != (sender == "hmac"):
        raise invalid("hmac", "The sender “hmac” needs these options, and no other has them.")
    if hmac is None:
        return None
    if set(hmac) - set(HMAC_OPTIONS) or not hmac.get("header"):
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
    return _stored(options)


def _stored(options: HmacOptions) -> dict[str, str | None]:
    return {
        "header": options.header,
        "algorithm": options.algorithm,
        "encoding": options.encoding,
        "prefix": options.prefix,
        "template": options.template,
        "timestampHeader": options.timestamp_header,
        "idHeader": options.id_header,
        "secretEncoding": options.secret_encoding,
    }


def _set(hook: Hook, preset: Preset, options: dict[str, str | None] | None) -> None:
    if not hook.sender and hook.methods is None:
        hook.methods = list(preset.methods)
    if hook.sender != preset.name:
        hook.event_id_pointers = None
        hook.handshake_expected_until = None
    hook.sender, hook.hmac = preset.name, options
    _reset_misfits(hook)
    if preset.handshake is not Handshake.META:
        hook.verify_token_ciphertext = None
    elif hook.verify_token_ciphertext is None:
        token = secrets.token_urlsafe(_VERIFY_TOKEN_BYTES)
        hook.verify_token_ciphertext = seal_verify_token(hook.pk, token)
    end_secrets_that_do_not_fit(hook)


def _remove(hook: Hook) -> None:
    """``methods`` is kept: it restricts the calls of any sender."""
    hook.sender, hook.hmac, hook.event_id_pointers = "", None, None
    hook.verify_token_ciphertext, hook.handshake_expected_until = None, None
    hook.signed_url, hook.tolerance_seconds = "", None
    check_bodies_differ(hook)
    _reset_misfits(hook)
    end_secrets(hook)


def _reset_misfits(hook: Hook) -> None:
    while found := misfits(hook):
        for name in found:
            setattr(hook, name, "" if name == "idempotency" else None)


def rules_in_force(hook: Hook) -> CallRules:
    """The rules of the hook's calls, with defaults for those that are not set.

    Without signing secrets; with a tolerance where signed material contains a time.
    """
    columns: dict[str, Any] = {
        name: getattr(hook, name) for name in (*CONDITIONS, *DETAILS) if "__" not in name
    }
    columns["script__max_concurrent_runs"] = hook.script.max_concurrent_runs
    rules = rules_of_columns(columns, timezone.now())
    preset = preset_of(hook)
    if rules.sender is None or rules.sender.tolerance_seconds is not None or preset is None:
        return rules
    tolerance = preset.tolerance_seconds if preset.has_timestamp else None
    sender = replace(rules.sender, tolerance_seconds=tolerance)
    return rules._replace(sender=sender)
