"""Refused calls as administrators meet them: why each was refused, and running it after all."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.utils import timezone

from core.http.body import BodyTooLarge
from core.http.origin import NOWHERE, Origin
from hooks.acceptance import (
    CallRefused,
    Greeted,
    admit,
    examine_call,
    signed_call,
)
from hooks.call_sender import open_secret
from hooks.models import Hook, RefusedCall, SigningSecret
from hooks.models.refused_call import RefusedContent, content_of
from hooks.rule_values import invalid
from hooks.rules import COLUMNS, CallRules, rules_of_call
from hooks.senders import Hint, Refusal, RefusalReason, Rules, Verified, diagnose
from scripts_engine.models import Run, Trigger
from scripts_engine.runs.execution import run_script
from scripts_engine.runs.spec import NOBODY, Author, Event, SavedRun, pinned_to

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
_PREFLIGHT = (
    "A page of another origin asked whether it may call the hook. Add its origin to the hook's "
    "origins of pages (allowedOrigins)."
)
# Why a call is not replayed.
_PROBLEMS = {
    RefusalReason.METHOD_NOT_ALLOWED: "The hook does not run for this method.",
    RefusalReason.BODY_TOO_LARGE: "The payload is larger than the hook allows.",
}
_NO_MATCH = "The call still does not match."
_OF_DUPLICATE = Hint(
    "duplicate-in-progress",
    "The same delivery was still being processed. The sender's next try gets the reply of that "
    "run. A replay runs the script once more.",
)


class KeptCall(NamedTuple):
    """A refused call as far as it is kept, for ``hooks.acceptance``."""

    row: RefusedCall
    content: RefusedContent
    body: bytes

    @property
    def method(self) -> str:
        return self.row.method

    @property
    def path(self) -> str:
        return ""

    @property
    def subpath(self) -> str:
        return self.content.subpath

    @property
    def query(self) -> str:
        return self.content.query

    @property
    def url(self) -> str:
        """What the sender signed, if it signs the URL."""
        return self.content.url

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        return self.content.headers

    @property
    def client_address(self) -> str:
        return self.row.client_address or ""

    @property
    def origin(self) -> Origin:
        return NOWHERE

    def read_body(self, max_bytes: int) -> bytes:
        if len(self.body) > max_bytes:
            raise BodyTooLarge
        return self.body


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
    rules = _rules_of(hook)
    sender = None if rules is None else rules.sender
    if sender is None:
        sentence = "The hook has no sender any more, so its calls need no signature."
        return (Hint("no-sender", sentence),)
    call = KeptCall(refused_call, content, content.body)
    now = refused_call.at.timestamp()
    if isinstance(examine_call(call, sender, call.body, now=now).result, Verified):
        sentence = "The call matches the hook's rules as they are now: it can be replayed."
        return (Hint("matches-now", sentence),)
    return diagnose(
        sender.rules_with_token(),
        [secret for _, secret in sender.open_secrets()],
        signed_call(call, sender, call.body),
        now=now,
        refused=Refusal(reason, refused_call.detail),
        retired_secrets=_retired_secrets(hook),
        other_hooks=_other_hooks(hook),
        public_url=settings.PUBLIC_URL,
    )


def _hint_about(reason: RefusalReason, refused_call: RefusedCall) -> Hint:
    is_preflight = reason is RefusalReason.METHOD_NOT_ALLOWED and refused_call.method == "OPTIONS"
    sentence = (_PREFLIGHT if is_preflight else _SENTENCES[reason]).format(
        detail=refused_call.detail,
        address=refused_call.client_address or "an unknown address",
        method=refused_call.method,
    )
    code = "".join(f"-{char.lower()}" if char.isupper() else char for char in reason).lstrip("-")
    return Hint(code, sentence)


def _sentence(detail: str) -> str:
    return f"Seen at the call: {detail}." if detail else ""


def _rules_of(hook: Hook) -> CallRules | None:
    """The hook's rules as they are now."""
    columns = Hook.objects.filter(pk=hook.pk).values_list(*COLUMNS).get()
    return rules_of_call(hook.pk, columns, timezone.now())


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
    found: list[tuple[str, Rules, Sequence[str]]] = []
    for other in newest[:MAX_OTHER_HOOKS]:
        rules = _rules_of(other)
        if rules is not None and (sender := rules.sender) is not None:
            label = f"{other} of {other.script}"
            found.append(
                (label, sender.rules_with_token(), [secret for _, secret in sender.open_secrets()])
            )
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
        raise invalid("id", "The call is not kept completely.")
    callable_hook = Hook.objects.callable().filter(pk=hook.pk)
    hook = callable_hook.select_related("script__organisation", "script__current_version").first()
    if hook is None:
        raise invalid("id", "The hook cannot be called.")
    event = _admitted_event(hook, KeptCall(refused_call, content, content.body))
    spec = SavedRun.of_script(hook.script, trigger=Trigger.HOOK, hook_id=hook.pk, started_by=by)
    run_id = run_script(pinned_to(spec, hook.pinned_version_id), event).run_id
    logger.info(
        "Refused call %s replayed as run %s, request %s", refused_call.pk, run_id, origin.request_id
    )
    return Run.objects.get(pk=run_id)


def _admitted_event(hook: Hook, call: KeptCall) -> Event:
    """What the script gets, by the hook's rules as they are now and the time of the call."""
    try:
        admitted = admit(call, _rules_of(hook), now=call.row.at.timestamp())
    except CallRefused as refused:
        raise invalid("id", _PROBLEMS.get(refused.reason, _NO_MATCH)) from None
    if isinstance(admitted, Greeted):
        raise invalid("id", _NO_MATCH)
    return admitted.event
