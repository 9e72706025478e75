"""One row of each model, all of one organisation, and all recognisable by its name."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from accounts.flows.organisations import add_member
from accounts.models import (
    ApiKey,
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Invitation,
    Organisation,
    PinChallenge,
    PinFailures,
    User,
)
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import (
    AnsweredHandshake,
    CredentialUse,
    Hook,
    RefusalCount,
    RefusedCall,
    SigningSecret,
)
from jobs.models import QueueEntry, Schedule
from jobs.queue.enqueue import QueuedWork, enqueue
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.models import (
    Plan,
    Release,
    Run,
    Script,
    ScriptVersion,
    Secret,
    StoredValue,
    Trigger,
)
from scripts_engine.plans.manifest import written_manifest
from scripts_engine.secrets import set_secret
from sessions_api.models import Session
from tests import factories
from tests.admin import pages
from tests.scripts_engine.plans.manifests import plan_of


def one_of_each(organisation: Organisation) -> dict[type, Any]:
    """By model with pages of its own. The organisation's keys must have no session yet."""
    name = organisation.name
    user = factories.make_user(
        organisation,
        f"{name.lower()}-member@example.org",
        name=f"{name} member",
        phone="+15550100199",
    )
    key = factories.make_api_key(organisation, f"{name} key")
    script = factories.make_script(organisation, f"return '{name} source'", f"{name} script")
    hook = factories.make_hook(script, f"{name} hook").hook
    device = factories.make_device_token(user, label=f"{name} phone").device_token
    factories.make_pin(user)
    factories.open_session(
        factories.api_key_login(key, email=f"{name.lower()}-program@example.org")
    )
    guest = User.objects.create_user(f"{name.lower()}-guest@example.org")
    run = pages.run_of(hook, body=f"{name} payload".encode())
    hook = set_sender(hook, sender="github")
    _make_notes(hook, set_signing_secret(hook, f"{name} signing secret"))
    return {
        Organisation: organisation,
        Invitation: add_member(organisation, email=guest.email),
        User: user,
        ApiKey: key.api_key,
        AuthEvent: AuthEvent.objects.of_organisation(organisation).get(
            kind=AuthEventKind.API_KEY_ISSUED
        ),
        DeviceToken: device,
        Session: Session.objects.get(api_key=key.api_key),
        Script: script,
        ScriptVersion: script.current_version,
        Hook: hook,
        Run: run,
        Schedule: make_schedule(script),
        QueueEntry: queue_a_run(hook, f"{name} payload".encode()),
        RefusedCall: RefusedCall.objects.get(hook=hook),
        Release: Release.objects.of_organisation(organisation).filter(number=1).get(),
        Plan: make_plan(organisation),
        Secret: set_secret(organisation, name=f"{name.upper()}_KEY", value=f"{name} value"),
        StoredValue: StoredValue.objects.create(
            organisation=organisation, key=f"{name.lower()} key".encode(), value=f'"{name} value"'
        ),
        PinChallenge: PinChallenge.objects.open_for(user.email),
        PinFailures: _locked(PinFailures.objects.get(bucket=user.email)),
    }


def _locked(failures: PinFailures) -> PinFailures:
    failures.consecutive_failures = settings.PIN_CONSECUTIVE_FAILURES
    failures.save()
    return failures


def make_plan(organisation: Organisation) -> Plan:
    """To change the time limit of all scripts."""
    document = written_manifest(organisation)
    for item in document["scripts"]:
        item["timeoutSeconds"] = 5
    return plan_of(organisation, document)


def queue_a_run(hook: Hook, body: bytes) -> QueueEntry:
    """A run that waits."""
    work = QueuedWork(
        organisation_id=hook.organisation.pk,
        script_id=hook.script_id,
        version_id=hook.script.current_version_id,
        event=factories.event_with(body=body),
        trigger=Trigger.HOOK,
        hook_id=hook.pk,
        delay_seconds=3600,
    )
    return QueueEntry.objects.get(pk=enqueue(work))


def make_schedule(script: Script) -> Schedule:
    """With a tick that ran, and one that did not."""
    name = script.organisation.name
    schedule = create_schedule(
        script, cron="0 6 * * *", name=f"{name} schedule", payload=f"{name} order".encode()
    )
    Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=timezone.now() - timedelta(days=2))
    run_due_schedules()
    Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=timezone.now())
    run_due_schedules()
    QueueEntry.objects.filter(schedule=schedule).delete()
    Run.objects.filter(schedule_id=schedule.pk).update(status="succeeded")
    return schedule


def _make_notes(hook: Hook, signing_secret: SigningSecret) -> None:
    """What is noted of the hook's calls."""
    now = timezone.now()
    CredentialUse.objects.create(
        hook=hook,
        credential=str(signing_secret.pk),
        last_used_at=now,
        last_used_from="192.0.2.99",
        count=1,
    )
    factories.make_refused_call(hook, f"{hook.organisation.name} refused".encode())
    RefusalCount.objects.create(
        script=hook.script,
        subject=hook.pk,
        reason="SignatureMismatch",
        day=now.date(),
        count=1,
    )
    AnsweredHandshake.objects.create(hook=hook, sender="github", response_status=200)
