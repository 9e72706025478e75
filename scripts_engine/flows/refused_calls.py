"""Refused calls as administrators meet them: why each was refused, and running it after all."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from core.http.origin import Origin
from core.http.redaction import holds_secret
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY, Author
from scripts_engine.flows.call_notes.content import RefusedContent, content_of
from scripts_engine.flows.rules_of_call import COLUMNS, CallRules, rules_of_call
from scripts_engine.flows.run_script import run_script
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.flows.signing_secrets import open_secret
from scripts_engine.flows.verify_sender import (
    event_id_of,
    verify_sender,
    with_verify_token,
)
from scripts_engine.models import Hook, RefusedCall, Run, SigningSecret, Trigger
from scripts_engine.senders import (
    Call,
    Hint,
    RefusalReason,
    Refused,
    Rules,
    Strength,
    Verified,
    diagnose,
)

logger = logging.getLogger(__name__)

# How long the secrets of the past explain calls.
RETIRED_SECRETS = timedelta(days=30)
MAX_RETIRED_SECRETS = 10
MAX_OTHER_HOOKS = 20

# The detail of a call that was refused as busy because of an equal delivery.
DUPLICATE_IN_PROGRESS = "the same delivery was being processed"

_SENTENCES = {
    RefusalReason.WRONG_TOKEN: "No hook of this script that can be called has the call token, "
    "{detail}. Unless something is switched off, copy the hook's URL to the sender again, or the "
    "new token after a rotation.",
    RefusalReason.NETWORK_NOT_ALLOWED: "The call came from {address}, which is in none of the "
    "hook's allowed networks. If that is the address of a proxy, TRUSTED_PROXY_COUNT is wrong.",
    RefusalReason.METHOD_NOT_ALLOWED: "The hook does not run for {method}. Allow the method at the "
    "hook, or have the sender use another one.",
    RefusalReason.BODY_TOO_LARGE: "The payload is larger than the hook allows. Raise the hook's "
    "limit, or have the sender send less.",
    RefusalReason.RATE_LIMITED: "Too many calls came: {detail}.",
    RefusalReason.BUSY: "Nothing was free to run the script: all sandboxes were busy, or as many "
    "runs as the hook or its script may have at the same time.",
    RefusalReason.QUEUE_FULL: "The organisation's queue was full.",
}
_OF_DUPLICATE = Hint(
    "duplicate-in-progress",
    "The same delivery was still being processed. The sender's next try gets the reply of that "
    "run. A replay runs the script once more.",
)


class _Settings(NamedTuple):
    """A hook's rules as they are now."""

    hook: Hook
    rules: CallRules
    sender: Rules
    secrets: Sequence[str]


def explain(refused_call: RefusedCall) -> tuple[Hint, ...]:
    """What probably went wrong, by the hook's rules as they are now; the likeliest first.

    Decrypts what was kept. No hint contains a secret, a signature or a part of the payload.
    """
    reason = RefusalReason(refused_call.reason)
    if reason is RefusalReason.BUSY and refused_call.detail == DUPLICATE_IN_PROGRESS:
        return (_OF_DUPLICATE,)
    if reason in _SENTENCES:
        return (_hint_about(reason, refused_call),)
    content, hook = content_of(refused_call), refused_call.hook
    if content is None or content.body is None or hook is None:
        return (
            Hint(
                "content-not-kept",
                "What the caller sent is not kept any more: only the newest refused calls keep it, "
                f"and no body above 256 KiB. {_sentence(refused_call.detail)}".rstrip(),
            ),
        )
    found = _settings_of(hook)
    if found is None:
        sentence = "The hook has no sender any more, so its calls need no signature."
        return (Hint("no-sender", sentence),)
    call, now = _call_of(refused_call, content, content.body), refused_call.at.timestamp()
    if isinstance(
        verify_sender(hook.pk, found.rules, found.sender, call, now=now).result, Verified
    ):
        sentence = "The call matches the hook's rules as they are now: it can be replayed."
        return (Hint("matches-now", sentence),)
    return diagnose(
        found.sender,
        found.secrets,
        call,
        now=now,
        refused=Refused(reason, refused_call.detail),
        retired_secrets=_retired_secrets(hook),
        other_hooks=_other_hooks(hook),
        public_url=settings.PUBLIC_URL,
    )


def _hint_about(reason: RefusalReason, refused_call: RefusedCall) -> Hint:
    sentence = _SENTENCES[reason].format(
        detail=refused_call.detail,
        address=refused_call.client_address or "an unknown address",
        method=refused_call.method,
    )
    code = "".join(f"-{char.lower()}" if char.isupper() else char for char in reason).lstrip("-")
    return Hint(code, sentence)


def _sentence(detail: str) -> str:
    return f"Seen at the call: {detail}." if detail else ""


def _call_of(refused_call: RefusedCall, content: RefusedContent, body: bytes) -> Call:
    return Call(
        method=refused_call.method,
        url=content.url,
        query=content.query,
        headers=content.headers,
        body=body,
    )


def _settings_of(hook: Hook) -> _Settings | None:
    """``None`` if the hook has no sender."""
    columns = Hook.objects.filter(pk=hook.pk).values_list(*COLUMNS).get()
    return _settings(hook, rules_of_call(columns, timezone.now()))


def _settings(hook: Hook, rules: CallRules | None) -> _Settings | None:
    if rules is None or rules.sender is None:
        return None
    opened = [open_secret(hook.pk, stored.ciphertext) for stored in rules.secrets]
    secrets = [secret for secret in opened if secret is not None]
    return _Settings(hook, rules, with_verify_token(hook.pk, rules, rules.sender), secrets)


def _retired_secrets(hook: Hook) -> list[tuple[str, datetime]]:
    ended = SigningSecret.objects.filter(hook=hook).retired()
    newest = ended.filter(ends_at__gt=timezone.now() - RETIRED_SECRETS).order_by("-ends_at")
    opened = [
        (open_secret(hook.pk, bytes(secret.ciphertext)), secret.ends_at)
        for secret in newest[:MAX_RETIRED_SECRETS]
    ]
    return [(secret, at) for secret, at in opened if secret is not None and at is not None]


def _other_hooks(hook: Hook) -> list[tuple[str, Rules, Sequence[str]]]:
    """Other hooks of the organisation whose sender is known, by their labels."""
    others = Hook.objects.of_organisation(hook.organisation).exclude(pk=hook.pk)
    newest = others.exclude(sender="").select_related("script").order_by("-created_at", "-id")
    now = timezone.now()
    found = []
    for other in newest[:MAX_OTHER_HOOKS]:
        columns = Hook.objects.filter(pk=other.pk).values_list(*COLUMNS).get()
        known = _settings(other, rules_of_call(columns, now))
        if known is not None:
            found.append((f"{other} of {other.script}", known.sender, known.secrets))
    return found


def secrets_of(hook: Hook) -> list[bytes]:
    """The hook's signing secrets, live and retired, to hide them where its calls are shown."""
    stored = SigningSecret.objects.filter(hook=hook).values_list("ciphertext", flat=True)
    opened = [open_secret(hook.pk, bytes(ciphertext)) for ciphertext in stored]
    return [secret.encode() for secret in opened if secret is not None]


# --- Replay --------------------------------------------------------------------------------------


def replay_refused_call(refused_call: RefusedCall, *, origin: Origin, by: Author = NOBODY) -> Run:
    """Runs the script for a call that its hook would accept now, as if it had accepted it then.

    Only the content that was kept is passed on: the payload, and the sender's own headers. Raises
    ``ValidationError`` if the call still does not match, or is not kept completely; one of
    ``NOT_RUN_ERRORS`` if nothing ran.
    """
    content, hook = content_of(refused_call), refused_call.hook
    if content is None or content.body is None or hook is None:
        raise _invalid("The call is not kept completely.")
    callable_hook = Hook.objects.callable().filter(pk=hook.pk)
    hook = callable_hook.select_related("script__organisation", "script__current_version").first()
    if hook is None:
        raise _invalid("The hook cannot be called.")
    event = _accepted_event(hook, refused_call, content, content.body)
    spec = RunSpec.of_script(hook.script, trigger=Trigger.HOOK, hook_id=hook.pk, started_by=by)
    run_id = run_script(spec, event).run_id
    logger.info(
        "Refused call %s replayed as run %s, request %s", refused_call.pk, run_id, origin.request_id
    )
    return Run.objects.get(pk=run_id)


def _accepted_event(
    hook: Hook, refused_call: RefusedCall, content: RefusedContent, body: bytes
) -> Event:
    columns = Hook.objects.filter(pk=hook.pk).values_list(*COLUMNS).get()
    rules = rules_of_call(columns, timezone.now())
    event = Event(
        method=refused_call.method,
        query=content.query,
        headers=tuple(each for each in content.headers if not holds_secret(each[1])),
        body=body,
        client_address=refused_call.client_address or "",
    )
    if rules is None:
        return event
    if refused_call.method not in rules.methods:
        raise _invalid("The hook does not run for this method.")
    if len(body) > rules.max_body_bytes:
        raise _invalid("The payload is larger than the hook allows.")
    if rules.sender is None:
        return event
    call, now = _call_of(refused_call, content, body), refused_call.at.timestamp()
    examined = verify_sender(hook.pk, rules, rules.sender, call, now=now)
    if not isinstance(examined.result, Verified):
        raise _invalid("The call still does not match.")
    return Event(
        method=event.method,
        query=event.query,
        headers=tuple(each for each in event.headers if each[1] not in examined.secrets),
        body=body,
        client_address=event.client_address,
        sender=rules.sender.preset,
        verified=examined.result.strength,
        event_id=event_id_of(examined.result, rules),
        shared_secrets=tuple(examined.secrets)
        if examined.result.strength is Strength.SHARED_SECRET
        else (),
    )


def _invalid(message: str) -> ValidationError:
    return ValidationError({"id": ValidationError(message, code="invalid")})
