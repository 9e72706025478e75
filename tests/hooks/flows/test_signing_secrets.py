"""Signing secrets: at most two live, ended in time, encrypted, or brought by a handshake."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import AuthEvent, Organisation
from core.encryption import key_version
from hooks.audit_kinds import HookEvent
from hooks.call_sender import open_secret
from hooks.flows.senders import (
    delete_signing_secret,
    expect_handshake,
    set_sender,
    set_signing_secret,
    store_greeted_secret,
)
from hooks.models import Hook, SigningSecret
from tests.concurrency import at_once
from tests.factories import make_hook, make_script


@pytest.fixture
def hook(hook: Hook) -> Hook:
    return set_sender(hook, sender="github")


@pytest.fixture
def asana(hook: Hook) -> Hook:
    return set_sender(hook, sender="asana")


def stored(hook: Hook) -> Hook:
    return Hook.objects.get(pk=hook.pk)


def seconds_left(secret: SigningSecret) -> float:
    secret.refresh_from_db()
    assert secret.ends_at is not None
    return (secret.ends_at - timezone.now()).total_seconds()


def test_a_secret_is_stored_encrypted_without_its_white_space(hook: Hook) -> None:
    secret = set_signing_secret(hook, " hush\n")

    assert open_secret(hook.pk, bytes(secret.ciphertext)) == "hush"
    assert b"hush" not in bytes(secret.ciphertext)
    assert (stored(hook).signing_secret, stored(hook).previous_signing_secret) == (secret, None)
    event = AuthEvent.objects.get(kind=HookEvent.SIGNING_SECRET_SET)
    assert (event.subject_id, event.reason) == (str(hook.pk), "")


def test_only_the_newest_retired_secrets_are_kept(hook: Hook) -> None:
    other = set_sender(make_hook(hook.script).hook, sender="github")
    kept_of_other = set_signing_secret(other, "hush")
    secrets = [set_signing_secret(hook, f"hush {number}") for number in range(30)]

    assert list(SigningSecret.objects.filter(hook=hook)) == secrets[:-23:-1]
    assert list(SigningSecret.objects.filter(hook=hook).live()) == secrets[:-3:-1]
    assert stored(hook).signing_secret == secrets[-1]
    assert stored(hook).previous_signing_secret == secrets[-2]
    assert stored(other).signing_secret == kept_of_other


def test_handshakes_do_not_keep_more_retired_secrets(asana: Hook) -> None:
    for number in range(30):
        expect_handshake(asana)
        assert store_greeted_secret(asana.pk, f"hush {number}")
        delete_signing_secret(SigningSecret.objects.filter(hook=asana).live().get())
    assert SigningSecret.objects.filter(hook=asana).count() == 21


def test_a_secret_of_another_hook_cannot_be_read(hook: Hook) -> None:
    other = make_hook(hook.script).hook
    secret = set_signing_secret(hook, "hush")

    assert open_secret(other.pk, bytes(secret.ciphertext)) is None


def test_the_current_secret_ends_after_the_overlap(hook: Hook) -> None:
    first = set_signing_secret(hook, "first")
    second = set_signing_secret(hook, "second", overlap_seconds=600)

    assert 590 < seconds_left(first) <= 600
    assert (stored(hook).signing_secret, stored(hook).previous_signing_secret) == (second, first)


def test_the_overlap_is_a_day_unless_another_is_given(hook: Hook) -> None:
    first = set_signing_secret(hook, "first")
    set_signing_secret(hook, "second")

    assert 86_390 < seconds_left(first) <= 86_400


def test_a_third_secret_ends_the_oldest_at_once(hook: Hook) -> None:
    first = set_signing_secret(hook, "first")
    second = set_signing_secret(hook, "second")
    third = set_signing_secret(hook, "third", overlap_seconds=600)

    assert seconds_left(first) <= 0
    assert 590 < seconds_left(second) <= 600
    assert (stored(hook).signing_secret, stored(hook).previous_signing_secret) == (third, second)


def test_without_an_overlap_the_current_secret_ends_at_once(hook: Hook) -> None:
    first = set_signing_secret(hook, "first")
    second = set_signing_secret(hook, "second", overlap_seconds=0)

    assert seconds_left(first) <= 0
    assert (stored(hook).signing_secret, stored(hook).previous_signing_secret) == (second, None)


@pytest.mark.parametrize("seconds", [-1, 604_801])
def test_an_overlap_has_its_bounds(hook: Hook, seconds: int) -> None:
    first = set_signing_secret(hook, "first")
    with pytest.raises(ValidationError) as refused:
        set_signing_secret(hook, "second", overlap_seconds=seconds)

    assert list(refused.value.message_dict) == ["overlap_seconds"]
    assert SigningSecret.objects.get() == first
    assert SigningSecret.objects.get().ends_at is None


@pytest.mark.parametrize(
    ("sender", "value"),
    [
        ("github", ""),
        ("github", " \n"),
        ("github", "x" * 1001),
        ("github", "hu\0sh"),
        ("standard-webhooks", "whsec_hush!"),
        ("standard-webhooks", "whsec_QUJD"),
        ("discord", "hush"),
        ("sendgrid", "hush"),
    ],
)
def test_a_value_that_cannot_be_the_senders_is_refused(hook: Hook, sender: str, value: str) -> None:
    set_sender(hook, sender=sender)
    with pytest.raises(ValidationError) as refused:
        set_signing_secret(hook, value)

    assert list(refused.value.message_dict) == ["value"]
    assert "hush" not in str(refused.value)
    assert not SigningSecret.objects.exists()


@pytest.mark.parametrize("sender", [None, "cloudevents"])
def test_a_hook_whose_sender_takes_no_secret_gets_none(hook: Hook, sender: Any) -> None:
    set_sender(hook, sender=sender)
    with pytest.raises(ValidationError) as refused:
        set_signing_secret(hook, "hush")

    assert list(refused.value.message_dict) == ["hook"]
    assert not SigningSecret.objects.exists()


def test_a_deleted_secret_ends_at_once_and_the_one_before_stays(hook: Hook) -> None:
    first = set_signing_secret(hook, "first")
    second = set_signing_secret(hook, "second")
    delete_signing_secret(second)

    assert seconds_left(second) <= 0
    assert seconds_left(first) > 0
    assert (stored(hook).signing_secret, stored(hook).previous_signing_secret) == (first, None)
    assert AuthEvent.objects.filter(kind=HookEvent.SIGNING_SECRET_DELETED).count() == 1


def test_a_secret_is_deleted_once(hook: Hook) -> None:
    secret = set_signing_secret(hook, "hush")
    delete_signing_secret(secret)
    ended = SigningSecret.objects.get().ends_at
    delete_signing_secret(secret)

    assert SigningSecret.objects.get().ends_at == ended
    assert AuthEvent.objects.filter(kind=HookEvent.SIGNING_SECRET_DELETED).count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_secrets_at_most_two_are_live(acme: Organisation) -> None:
    hook = set_sender(make_hook(make_script(acme)).hook, sender="github")
    at_once(8, lambda number: set_signing_secret(hook, f"secret {number}"))

    live = list(SigningSecret.objects.live())
    found = stored(hook)
    assert [found.signing_secret, found.previous_signing_secret] == live


# --- Handshakes -----------------------------------------------------------------------------------


def test_an_expected_handshake_brings_the_secret_once(asana: Hook) -> None:
    expect_handshake(asana)

    assert store_greeted_secret(asana.pk, "hush") is True
    assert store_greeted_secret(asana.pk, "another") is False
    secret = SigningSecret.objects.get()
    assert open_secret(asana.pk, bytes(secret.ciphertext)) == "hush"
    assert stored(asana).signing_secret == secret
    event = AuthEvent.objects.get(kind=HookEvent.SIGNING_SECRET_RECEIVED)
    assert (event.actor_kind, event.subject_id) == ("stranger", str(asana.pk))


def test_a_handshake_that_nobody_expects_brings_nothing(asana: Hook) -> None:
    assert store_greeted_secret(asana.pk, "hush") is False
    assert not SigningSecret.objects.exists()


def test_a_handshake_is_expected_for_ten_minutes(asana: Hook) -> None:
    expected = expect_handshake(asana).handshake_expected_until
    assert expected is not None
    assert 590 < (expected - timezone.now()).total_seconds() <= 600
    Hook.objects.update(handshake_expected_until=expected - timedelta(minutes=10))

    assert store_greeted_secret(asana.pk, "hush") is False
    assert not SigningSecret.objects.exists()


def test_a_handshake_is_not_expected_while_a_secret_is_set(asana: Hook) -> None:
    secret = set_signing_secret(asana, "hush")
    with pytest.raises(ValidationError) as refused:
        expect_handshake(asana)

    assert list(refused.value.message_dict) == ["hook"]
    assert stored(asana).handshake_expected_until is None
    assert store_greeted_secret(asana.pk, "another") is False
    assert SigningSecret.objects.get() == secret


def test_a_handshake_never_replaces_a_secret(asana: Hook) -> None:
    secret = set_signing_secret(asana, "hush")
    soon = timezone.now() + timedelta(minutes=5)
    Hook.objects.update(handshake_expected_until=soon)

    assert store_greeted_secret(asana.pk, "another") is False
    assert SigningSecret.objects.get() == secret
    assert stored(asana).signing_secret == secret


def test_a_handshake_is_expected_again_after_the_secret_was_deleted(asana: Hook) -> None:
    delete_signing_secret(set_signing_secret(asana, "hush"))
    expect_handshake(asana)

    assert store_greeted_secret(asana.pk, "another") is True


def test_a_secret_that_is_set_ends_the_wait_for_a_handshake(asana: Hook) -> None:
    expect_handshake(asana)
    secret = set_signing_secret(asana, "hush")
    delete_signing_secret(secret)

    assert store_greeted_secret(asana.pk, "another") is False


@pytest.mark.parametrize("sender", [None, "github", "xero"])
def test_a_handshake_without_a_secret_is_not_expected(hook: Hook, sender: Any) -> None:
    set_sender(hook, sender=sender)
    with pytest.raises(ValidationError) as refused:
        expect_handshake(hook)

    assert list(refused.value.message_dict) == ["hook"]
    assert stored(hook).handshake_expected_until is None


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_handshakes_one_brings_the_secret(acme: Organisation) -> None:
    hook = set_sender(make_hook(make_script(acme)).hook, sender="asana")
    expect_handshake(hook)
    stored_ones = at_once(8, lambda number: store_greeted_secret(hook.pk, f"secret {number}"))

    assert stored_ones.count(True) == 1
    assert stored(hook).signing_secret == SigningSecret.objects.get()


def test_a_new_secret_uses_the_newest_pepper(hook: Hook, settings: Any) -> None:
    settings.PEPPERS = {9: b"n" * 32, **settings.PEPPERS}

    assert key_version(bytes(set_signing_secret(hook, "hush").ciphertext)) == 9
