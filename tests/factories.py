"""What tests are made of. Everything is made by the flows that make it in earnest."""

import base64
import json
import uuid
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.admin_login_limits import counts_of_try
from accounts.audit import record_about_address
from accounts.flows.api_keys import IssuedApiKey, issue_api_key
from accounts.flows.authenticate import authenticate_device
from accounts.flows.check_pin import IssuedDeviceToken, check_pin
from accounts.flows.organisations import create_organisation
from accounts.flows.send_pin import choose_channel, code_to_send, send_pin
from accounts.flows.users import create_user
from accounts.messages.channels import SendVia, channels_asked_for
from accounts.models import (
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Organisation,
    RateCounter,
    User,
)
from accounts.rate_limits.limiter import claim
from accounts.scopes import Scope
from core.database.ids import first_id_at
from core.http.origin import NOWHERE, Origin
from core.names import free_name
from hooks.flows.find_callable_hook import CallableHook
from hooks.flows.hooks import IssuedHook, issue_hook
from hooks.flows.senders import set_signing_secret
from hooks.models import Hook, Idempotency, RefusedCall, ReplyMode
from hooks.models.refused_call import RefusedContent, encrypted
from hooks.rule_values import DEFAULT_METHODS
from hooks.rules import CallRules
from jobs.messages import attempts
from jobs.messages.attempts import TimeLimit, perform
from jobs.models import RunLimits
from scripts_engine.flows.scripts import create_script
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Event, SavedRun

ECHO = 'return params.get("body")'


def make_organisation(name: str = "Acme") -> Organisation:
    organisation = create_organisation(name)
    AuthEvent.objects.filter(organisation=organisation).delete()
    return organisation


def make_user(organisation: Organisation, email: str = "alice@example.com", **fields: Any) -> User:
    user = create_user(organisation, email=email, **fields)
    # The cast enters with an empty record.
    AuthEvent.objects.filter(user=user).delete()
    RateCounter.objects.filter(key__startswith="user-creation/").delete()
    return user


def make_api_key(organisation: Organisation, name: str = "warehouse") -> IssuedApiKey:
    return issue_api_key(organisation, name=name)


def token_with(organisation: Organisation, *scopes: Scope, name: str = "narrow") -> str:
    """The bearer token of a session of a new key with these scopes."""
    issued = issue_api_key(organisation, name=name, scopes=[scope.value for scope in scopes])
    return open_session(api_key_login(issued))


def make_pin(user: User, device: uuid.UUID | None = None) -> str:
    """A new code as the worker makes it, without sending it."""
    return make_code(user.email, user, device)


def make_code(email: str, user: User | None, device: uuid.UUID | None = None) -> str:
    # Later than every code that there is, or the newest would be returned again.
    asked_at = timezone.now() + timedelta(seconds=1)
    pin = code_to_send(email, user, asked_at, device)
    assert pin is not None
    return pin


def deliver_pin(email: str, send_via: SendVia) -> None:
    """Sends a code as the tasks do, over one channel after the other."""
    asked_at = timezone.now()
    for channel in channels_asked_for(send_via):
        chosen = choose_channel(email, channel, send_via, asked_at, is_counted=True)
        if chosen not in {channel, None}:
            chosen = choose_channel(email, chosen, SendVia.EMAIL, asked_at, is_counted=True)
        if chosen is not None:
            send_pin(email, chosen, asked_at)


def work() -> None:
    """Does the background work that is due, in the test's own transaction."""
    while queues := attempts.queues_with_due_messages():
        for queue in queues:
            for message in attempts.claim(queue, 1, "worker"):
                perform(message, TimeLimit())


def fail_admin_logins(user: User, times: int = 5) -> None:
    """Wrong passwords at the admin's login: five from 192.0.2.1, then from the next addresses."""
    for number in range(times):
        address = f"192.0.2.{1 + number // 5}"
        claim(counts_of_try(user.email, address, browser=None))
        origin = Origin(client_address=address)
        record_about_address(AuthEventKind.ADMIN_LOGIN_REFUSED, origin, user.email)


def make_device_token(
    user: User, device: uuid.UUID | None = None, label: str = "phone"
) -> IssuedDeviceToken:
    issued = check_pin(
        email=user.email,
        pin=make_pin(user),
        device=device or uuid.uuid4(),
        label=label,
        origin=NOWHERE,
    )
    assert issued is not None
    return issued


def is_accepted(issued: IssuedDeviceToken) -> bool:
    """Whether the device token would open a session."""
    return isinstance(authenticate_device(issued.device_token.pk, issued.token, ""), DeviceToken)


def make_script(
    organisation: Organisation, source: str = ECHO, name: str = "echo", **fields: Any
) -> Script:
    """A script of that name, with a number if the organisation has one already."""
    with transaction.atomic():
        # Others wait until the name is taken.
        Organisation.objects.select_for_update().get(pk=organisation.pk)
        taken = Script.objects.of_organisation(organisation).values_list("name_key", flat=True)
        name = free_name(name, set(taken))
        return create_script(organisation, name=name, source=source, author=NOBODY, **fields)


def spec_of(hook: Hook) -> SavedRun:
    """What a call of the hook runs."""
    return SavedRun.of_script(hook.script, trigger=Trigger.HOOK, hook_id=hook.pk)


def callable_hook(hook: Hook, rules: CallRules | None = None) -> CallableHook:
    """What the look-up of a call finds."""
    script = hook.script
    return CallableHook(
        id=hook.pk,
        organisation_id=script.organisation_id,
        script_id=script.pk,
        script_name=script.name,
        timeout_seconds=script.timeout_seconds,
        version_id=script.current_version_id,
        rules=rules,
        overlapping_digest="",
    )


def rules_with(**changes: Any) -> CallRules:
    """The rules of a hook on which only these are set."""
    rules = CallRules(
        sender=None,
        allowed_networks=(),
        methods=DEFAULT_METHODS,
        allow_path=False,
        allowed_origins=(),
        max_body_bytes=settings.HOOK_MAX_BODY_BYTES,
        idempotency=Idempotency.NONE,
        idempotency_window_seconds=86_400,
        calls_per_minute=None,
        burst=0,
        max_concurrent_runs=None,
        max_concurrent_runs_of_script=None,
        reply_mode=ReplyMode.SCRIPT,
        accepted_status=202,
        max_attempts=settings.QUEUE_MAX_ATTEMPTS,
    )
    return rules._replace(**changes)


def event_with(**changes: Any) -> Event:
    event = Event(method="POST", query="", headers=(), body=b"", client_address="")
    return event._replace(**changes)


def run_lua(organisation: Organisation, source: str, body: bytes = b"", **script: Any) -> Run:
    """The run of a new script with that source."""
    made = make_script(organisation, source)
    for field, value in script.items():
        setattr(made, field, value)
    return run_script_once(made, body)


def run_script_once(script: Script, body: bytes = b"") -> Run:
    event = Event(method="POST", query="", headers=(), body=body, client_address="")
    return try_script(script, event=event, author=NOBODY, trigger=Trigger.ADMIN)


def make_past_run(hook: Hook, at: datetime, status: str = "succeeded", **fields: Any) -> Run:
    """A run as it would have been written at that time."""
    run = past_run(hook, at, status, **fields)
    run.save()
    return run


def make_past_draft(hook: Hook, at: datetime, status: str = "succeeded", **fields: Any) -> Run:
    """A try-out of an unsaved source of the hook's script, at that time."""
    run = past_run(hook, at, status, unsaved_source="return 1", is_draft=True, **fields)
    run.script_version = run.hook_id = None
    run.trigger = Trigger.ADMIN
    run.save()
    return run


def past_run(hook: Hook, at: datetime, status: str = "succeeded", **fields: Any) -> Run:
    """The same, not saved yet: to save many at once."""
    request, reply = (fields.get(name, b"") for name in ("request_body", "response_body"))
    sizes = {"request_bytes": len(request), "response_bytes": len(reply)}
    usual = {
        "script_version": hook.script.current_version,
        "trigger": Trigger.HOOK,
        "queued_ms": 0,
        "duration_ms": 1,
        "response_status": 200,
    }
    return Run(
        id=uuid.UUID(int=first_id_at(at).int | uuid.uuid4().int % 2**62),
        organisation=hook.script.organisation,
        script=hook.script,
        hook_id=hook.pk,
        status=status,
        started_at=at,
        **{**usual, **sizes, **fields},
    )


def reply_of(run: Run) -> str:
    """The reply of a run that must have succeeded."""
    assert run.status == "succeeded", run.error_message
    return bytes(run.response_body).decode()


def make_hook(script: Script, name: str = "shop") -> IssuedHook:
    """A hook of that name, with a number if the script has one already."""
    taken = script.hooks.filter(deleted_at=None).values_list("name_key", flat=True)
    return issue_hook(script, name=free_name(name, set(taken)))


def hook_that(organisation: Organisation, source: str = ECHO, name: str = "echo") -> Hook:
    """A hook of a new script with that source."""
    return make_hook(make_script(organisation, source, name)).hook


def set_rules(hook: Hook, **columns: Any) -> None:
    """Sets columns of the hook's rules as they are stored."""
    Hook.objects.filter(pk=hook.pk).update(**columns)
    if limits := {"max_concurrent_runs", "max_attempts"} & columns.keys():
        RunLimits.objects.update_or_create(
            pk=hook.pk, defaults={name: columns[name] for name in limits}
        )


def set_secret_of(hook: Hook, value: str, overlap_seconds: int = 0) -> None:
    """Sets the signing secret; the one before stays good for the overlap."""
    set_signing_secret(hook, value, overlap_seconds=overlap_seconds)


def make_refused_call(
    hook: Hook,
    body: bytes = b"{}",
    headers: tuple[tuple[str, str], ...] = (),
    reason: str = "SignatureMismatch",
) -> RefusedCall:
    """A refused POST of the hook whose content is kept."""
    call = RefusedCall(
        organisation=hook.organisation,
        script=hook.script,
        hook=hook,
        reason=reason,
        client_address="192.0.2.1",
        method="POST",
        header_names=[name for name, _ in headers],
    )
    content = RefusedContent(headers=headers, query="", url="", body=body)
    call.content_ciphertext = encrypted(content, call.pk)
    call.save()
    return call


def api_key_login(issued: IssuedApiKey, **changes: Any) -> dict[str, Any]:
    """The body of POST /session with that key."""
    login = {
        "uid": issued.api_key.key,
        "password": issued.secret,
        "credential": "ApiKey",
        "email": "ops@example.com",
    }
    return login | changes


def device_login(issued: IssuedDeviceToken, **changes: Any) -> dict[str, Any]:
    """The body of POST /session with that device token."""
    login = {
        "uid": str(issued.device_token.pk),
        "password": issued.token,
        "credential": "Token",
        "email": issued.device_token.user.email,
    }
    return login | changes


def post_session(client: Client, body: Any, **headers: Any) -> Any:
    return client.post(
        "/session", json.dumps(body), content_type="application/json", headers=headers
    )


def open_session(login: dict[str, Any]) -> str:
    """The bearer token of a new session."""
    response = post_session(Client(), login)
    assert response.status_code == 201, response.content
    token: str = response.json()["token"]
    return token


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(hook_id: object, call_token: str) -> dict[str, str]:
    encoded = base64.b64encode(f"{hook_id}:{call_token}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


class GraphQLAnswer(NamedTuple):
    status: int
    data: Any
    errors: list[dict[str, Any]]

    @property
    def code(self) -> str | None:
        """The first error's code."""
        return self.errors[0]["extensions"]["code"] if self.errors else None


def graphql(
    path: str, query: str, token: str | None = None, headers: Any = None, **variables: Any
) -> GraphQLAnswer:
    response = Client().post(
        path,
        json.dumps({"query": query, "variables": variables}),
        content_type="application/json",
        headers={**(bearer(token) if token else {}), **(headers or {})},
    )
    document = response.json()
    return GraphQLAnswer(response.status_code, document.get("data"), document.get("errors", []))


def field_of(answer: GraphQLAnswer) -> Any:
    """The field that the first error names."""
    return answer.errors[0]["extensions"].get("field")


def user_graphql(query: str, token: str | None = None, **variables: Any) -> GraphQLAnswer:
    return graphql("/user/graphql", query, token, **variables)


def admin_graphql(query: str, token: str | None = None, **variables: Any) -> GraphQLAnswer:
    return graphql("/admin/graphql", query, token, **variables)
