"""Sends a hook an event as its sender would, through the checks of any call, in this process."""

import time
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import User
from core.http.body import BodyTooLarge
from core.http.origin import NOWHERE, Origin
from hooks.acceptance import Admitted, CallRefused, admit
from hooks.audit_kinds import HookEvent
from hooks.call_sender import StoredSecret, seal_secret
from hooks.flows.find_callable_hook import CallableHook
from hooks.flows.hooks import record_about_hook
from hooks.flows.idempotency import RepeatedReply
from hooks.flows.run_call import run_or_queue
from hooks.models import Hook
from hooks.rule_values import invalid
from hooks.rules import COLUMNS, CallRules, rules_of_call
from hooks.senders import Call, InvalidSecretError, SampleEvent, sample_event
from scripts_engine.models import Run, Trigger


class _SentCall(NamedTuple):
    """A test event, for ``hooks.acceptance``."""

    call: Call

    @property
    def path(self) -> str:
        return ""

    @property
    def method(self) -> str:
        return self.call.method

    @property
    def subpath(self) -> str:
        return ""

    @property
    def query(self) -> str:
        # A signed URL's is for the signature alone, and not for who reads runs.
        return ""

    @property
    def url(self) -> str:
        return self.call.url

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        return self.call.headers

    @property
    def client_address(self) -> str:
        return ""

    @property
    def origin(self) -> Origin:
        return NOWHERE

    def read_body(self, max_bytes: int) -> bytes:
        if len(self.call.body) > max_bytes:
            raise BodyTooLarge
        return self.call.body


def send_test_event(hook: Hook, *, origin: Origin = NOWHERE, by: User | None = None) -> Run:
    """Runs the hook's script, or queues its run, for a new event of the hook's sender.

    The event is signed with a key of its own, which is thrown away. Methods, size, signature, rate
    and duplicates count as for any call; networks do not. Nothing of it counts as a use of the
    hook. Raises ``ValidationError`` by field if the hook would refuse it or has no secret; one of
    ``NOT_RUN_ERRORS`` or ``RateLimitedError`` if nothing ran.
    """
    callable_hook = Hook.objects.callable().filter(pk=hook.pk)
    found = callable_hook.select_related("script__organisation").first()
    if found is None:
        raise invalid("hook", "The hook takes no calls now.")
    rules = _rules_of(found)
    event = _event_for(found, rules)
    if rules is not None:
        rules = _verifying(rules, event)
    try:
        admitted = admit(_SentCall(event.call), rules)
    except CallRefused as refused:
        raise _refusal(refused) from None
    if not isinstance(admitted, Admitted):
        raise invalid("hook", "The event is answered as a handshake.")
    script = found.script
    target = CallableHook(
        id=found.pk,
        organisation_id=script.organisation_id,
        script_id=script.pk,
        script_name=script.name,
        timeout_seconds=script.timeout_seconds,
        version_id=found.pinned_version_id or script.current_version_id,
        rules=rules,
        overlapping_digest="",
        trigger=Trigger.TEST,
    )
    result = run_or_queue(target, admitted.event)
    if not isinstance(result, RepeatedReply):
        record_about_hook(HookEvent.TEST_EVENT_SENT, found, origin, by)
    run: Run = Run.objects.get(pk=result.run_id)
    return run


def _rules_of(hook: Hook) -> CallRules | None:
    values = Hook.objects.filter(pk=hook.pk).values_list(*COLUMNS).get()
    return rules_of_call(hook.pk, values, timezone.now())


def _event_for(hook: Hook, rules: CallRules | None) -> SampleEvent:
    sender = None if rules is None else rules.sender
    url = hook.url if sender is None else sender.signed_url or hook.url
    secrets = [] if sender is None else [secret for _, secret in sender.open_secrets()]
    try:
        return sample_event(
            None if sender is None else sender.rules_with_token(),
            secrets[0] if secrets else None,
            url,
            now=time.time(),
        )
    except InvalidSecretError:
        raise invalid("hook", "Set the signing secret first.") from None


def _verifying(rules: CallRules, event: SampleEvent) -> CallRules:
    """The rules with the secret that verifies the event in place of the live ones."""
    sender = rules.sender
    if sender is None or event.secret is None:
        return rules
    sealed = StoredSecret(sender.hook_id, seal_secret(sender.hook_id, event.secret))
    return rules._replace(sender=sender._replace(secrets=[sealed]))


def _refusal(refused: CallRefused) -> ValidationError:
    seen = f": {refused.seen}" if refused.seen else ""
    return invalid("hook", f"The hook would refuse the event, {refused.reason}{seen}.")
