"""What tests are made of. Everything is made by the flows that make it in earnest."""

import base64
import json
import uuid
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.test import Client
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from accounts.admin_login_limits import counts_of_try
from accounts.audit import record_about_address
from accounts.flows.api_keys import IssuedApiKey, issue_api_key
from accounts.flows.authenticate import authenticate_device
from accounts.flows.check_pin import IssuedDeviceToken, check_pin
from accounts.flows.organisations import create_organisation
from accounts.flows.send_pin import choose_pin_channels, code_to_send, send_pin
from accounts.flows.users import create_user
from accounts.messages.channels import SendVia
from accounts.models import (
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Organisation,
    RateWindow,
    User,
)
from accounts.rate_limits.limiter import claim
from core.database.ids import first_id_at
from core.http.origin import NOWHERE, Origin
from core.tasks.worker import Worker
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY
from scripts_engine.flows.call_notes.content import RefusedContent, encrypted
from scripts_engine.flows.hooks import IssuedHook, issue_hook
from scripts_engine.flows.rules_of_call import ALL_METHODS, CallRules
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.flows.scripts import create_script
from scripts_engine.flows.signing_secrets import set_signing_secret
from scripts_engine.flows.try_script import try_script
from scripts_engine.models import Hook, Idempotency, RefusedCall, ReplyMode, Run, Script, Trigger

ECHO = 'return params.get("body")'


def make_organisation(name: str = "Acme") -> Organisation:
    organisation = create_organisation(name)
    AuthEvent.objects.filter(organisation=organisation).delete()
    return organisation


def make_user(organisation: Organisation, email: str = "alice@example.com", **fields: Any) -> User:
    user = create_user(organisation, email=email, **fields)
    # The cast enters with an empty record.
    AuthEvent.objects.filter(user=user).delete()
    RateWindow.objects.filter(key__contains="/user-creation/").delete()
    return user


def make_api_key(organisation: Organisation, name: str = "warehouse") -> IssuedApiKey:
    return issue_api_key(organisation, name=name)


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
    """Sends a code as the worker does, over one channel after the other."""
    asked_at = timezone.now()
    for channel in choose_pin_channels(email, send_via, asked_at):
        send_pin(email, channel, asked_at)


def work() -> None:
    """Does the background work that is due, as the worker does, in the test's own transaction."""
    worker = Worker(
        queue_names=["*"],
        excluded_queue_names=[],
        backend_name="default",
        interval=0,
        batch=True,
        startup_delay=False,
        max_tasks=None,
        worker_id="worker",
    )
    while (row := DBTaskResult.objects.ready().get_locked()) is not None:
        row.claim(worker.worker_id)
        worker.run_task(row)


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


def make_script(organisation: Organisation, source: str = ECHO, name: str = "echo") -> Script:
    return create_script(organisation, name=name, source=source, author=NOBODY)


def spec_of(hook: Hook) -> RunSpec:
    """What a call of the hook runs."""
    return RunSpec.of_script(hook.script, trigger=Trigger.HOOK, hook_id=hook.pk)


def rules_with(**changes: Any) -> CallRules:
    """The rules of a hook on which only these are set."""
    rules = CallRules(
        sender=None,
        verify_token_ciphertext=None,
        signed_url="",
        secrets=(),
        allowed_networks=(),
        methods=ALL_METHODS,
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
    event = Event(method="POST", query="", headers=(), body=body, client_address="")
    return try_script(made, event=event, author=NOBODY, trigger=Trigger.ADMIN)


def make_past_run(hook: Hook, at: datetime, status: str = "succeeded", **fields: Any) -> Run:
    """A run as it would have been written at that time."""
    run = past_run(hook, at, status, **fields)
    run.save()
    return run


def make_past_draft(hook: Hook, at: datetime, status: str = "succeeded", **fields: Any) -> Run:
    """A try-out of an unsaved source of the hook's script, at that time."""
    run = past_run(hook, at, status, unsaved_source="return 1", **fields)
    run.script_version = run.hook = None
    run.trigger = Trigger.ADMIN
    run.save()
    return run


def past_run(hook: Hook, at: datetime, status: str = "succeeded", **fields: Any) -> Run:
    """The same, not saved yet: to save many at once."""
    request, reply = (fields.get(name, b"") for name in ("request_body", "response_body"))
    sizes = {"request_bytes": len(request), "response_bytes": len(reply)}
    return Run(
        id=uuid.UUID(int=first_id_at(at).int | uuid.uuid4().int % 2**62),
        organisation=hook.script.organisation,
        script=hook.script,
        script_version=hook.script.current_version,
        hook=hook,
        trigger=Trigger.HOOK,
        status=status,
        started_at=at,
        **{"queued_ms": 0, "duration_ms": 1, "response_status": 200, **sizes, **fields},
    )


def reply_of(run: Run) -> str:
    """The reply of a run that must have succeeded."""
    assert run.status == "succeeded", run.error_message
    return bytes(run.response_body).decode()


def make_hook(script: Script, name: str = "shop") -> IssuedHook:
    return issue_hook(script, name=name)


def set_rules(hook: Hook, **columns: Any) -> None:
    """Sets columns of ``CallRules`` as they are stored."""
    Hook.objects.filter(pk=hook.pk).update(**columns)


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


def user_graphql(query: str, token: str | None = None, **variables: Any) -> GraphQLAnswer:
    return graphql("/user/graphql", query, token, **variables)


def admin_graphql(query: str, token: str | None = None, **variables: Any) -> GraphQLAnswer:
    return graphql("/admin/graphql", query, token, **variables)
