"""Old signing secrets and notes of calls are deleted, and what is still needed is not."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import Organisation
from hooks.flows.hooks import delete_hook, rotate_call_token
from hooks.flows.retention import (
    forget_refusal_counts,
    forget_refused_calls,
    forget_retired_secrets,
    forget_unused_tokens,
)
from hooks.flows.senders import delete_signing_secret, set_sender, set_signing_secret
from hooks.models import CredentialUse, Hook, RefusalCount, RefusedCall, SigningSecret
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Script
from tests.factories import make_hook, make_script


@pytest.fixture
def hook(hook: Hook) -> Hook:
    return set_sender(hook, sender="github")


def use(hook: Hook, credential: str, days_ago: int = 0) -> CredentialUse:
    at = timezone.now() - timedelta(days=days_ago)
    return CredentialUse.objects.create(hook=hook, credential=credential, last_used_at=at, count=1)


def end(secret: SigningSecret, days_ago: float) -> None:
    delete_signing_secret(secret)
    ended = timezone.now() - timedelta(days=days_ago)
    SigningSecret.objects.filter(pk=secret.pk).update(ends_at=ended)


def test_a_retired_secret_is_deleted_after_thirty_days_with_its_use(hook: Hook) -> None:
    old, recent, current = (set_signing_secret(hook, value) for value in ("one", "two", "three"))
    end(old, 30.1)
    end(recent, 29.9)
    use(hook, str(old.pk))
    kept = use(hook, str(current.pk))

    assert forget_retired_secrets() == 1
    assert set(SigningSecret.objects.all()) == {recent, current}
    assert CredentialUse.objects.get() == kept
    assert Hook.objects.get().signing_secret == current


def test_secrets_of_what_was_deleted_go_after_thirty_days(acme: Organisation, hook: Hook) -> None:
    gone = set_sender(make_hook(hook.script).hook, sender="github")
    living = set_sender(make_hook(make_script(acme)).hook, sender="github")
    secrets = [set_signing_secret(each, "hush") for each in (gone, hook, living)]
    use(gone, str(secrets[0].pk))
    delete_hook(gone)
    delete_script(hook.script)

    assert forget_retired_secrets() == 0
    Hook.objects.filter(pk=gone.pk).update(deleted_at=timezone.now() - timedelta(days=30))
    assert forget_retired_secrets() == 1
    assert not CredentialUse.objects.exists()
    Script.objects.filter(pk=hook.script_id).update(deleted_at=timezone.now() - timedelta(days=30))
    assert forget_retired_secrets() == 1
    assert SigningSecret.objects.get() == secrets[2]


def test_the_use_of_a_replaced_call_token_is_deleted(hook: Hook) -> None:
    replaced = hook.digest
    rotate_call_token(hook, overlap_seconds=60)
    rotated = rotate_call_token(hook, overlap_seconds=60).hook
    use(hook, replaced, days_ago=31)
    kept = {
        use(hook, rotated.digest, days_ago=31),
        use(hook, rotated.previous_digest, days_ago=31),
        use(hook, "0" * 64, days_ago=29),
        use(hook, "00000000-0000-0000-0000-000000000000", days_ago=31),
    }

    assert forget_unused_tokens() == 1
    assert set(CredentialUse.objects.all()) == kept


def test_counters_of_refusals_are_kept_for_thirty_days(hook: Hook) -> None:
    today = datetime.now(UTC).date()
    _, kept = (
        RefusalCount.objects.create(
            script=hook.script,
            subject=hook.pk,
            reason="WrongToken",
            day=today - timedelta(days=days),
            count=1,
        )
        for days in (31, 30)
    )

    assert forget_refusal_counts() == 1
    assert RefusalCount.objects.get() == kept


def test_refused_calls_of_what_was_deleted_are_deleted(acme: Organisation, hook: Hook) -> None:
    gone, living = make_hook(hook.script).hook, make_hook(make_script(acme)).hook
    calls = [
        RefusedCall.objects.create(
            organisation=acme, script=each.script, hook=each, reason="Busy", method="POST"
        )
        for each in (gone, hook, living)
    ]
    delete_hook(gone)

    assert forget_refused_calls() == 1
    delete_script(hook.script)
    assert forget_refused_calls() == 1
    assert RefusedCall.objects.get() == calls[2]
