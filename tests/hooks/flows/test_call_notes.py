"""What is kept of calls after their answer: refusals, handshakes, credentials in use."""

import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from accounts import credentials
from accounts.credentials import SecretKind
from accounts.models import Organisation
from hooks.flows import call_notes as collector
from hooks.flows import stored_notes as storage
from hooks.flows.call_notes import CallNotes
from hooks.flows.hooks import IssuedHook, rotate_call_token, update_hook
from hooks.flows.stored_notes import HandshakeNote, RefusedCallNote, UsedCredential
from hooks.models import AnsweredHandshake, CredentialUse, Hook, RefusalCount, RefusedCall
from hooks.models.refused_call import content_of
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Script
from tests.eventually import eventually
from tests.factories import make_hook, make_script

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def notes() -> CallNotes:
    return CallNotes()


@pytest.fixture
def echo(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme))


def refused(issued: IssuedHook, **changes: Any) -> RefusedCallNote:
    fields = {
        "at": NOON,
        "reason": "SignatureMismatch",
        "detail": "",
        "organisation_id": issued.hook.script.organisation_id,
        "script_id": issued.hook.script_id,
        "hook_id": issued.hook.pk,
        "client_address": "192.0.2.1",
        "method": "POST",
        "headers": (("Content-Type", "text/plain"), ("X-Sig", "abc"), ("Authorization", "Basic x")),
        "query": "a=1",
        "sender_headers": frozenset({"x-sig"}),
        "body": b"\0payload",
    }
    return RefusedCallNote(**(fields | changes))


def wrong_token(issued: IssuedHook, call_token: str, **changes: Any) -> RefusedCallNote:
    fields = {"hook_id": None, "reason": "WrongToken", "call_token": call_token, "body": None}
    return refused(issued, **(fields | changes))


def add_many(notes: CallNotes, number: int, issued: IssuedHook) -> None:
    """One a second: more of one hook would be dropped."""
    for place in range(number):
        notes._taken.clear()
        notes.add_refused(refused(issued, detail=f"number {place}"))


def flood(notes: CallNotes, number: int, note: RefusedCallNote) -> None:
    for _ in range(number):
        notes.add_refused(note)


def test_a_refused_call_is_kept_with_what_explains_it(notes: CallNotes, echo: IssuedHook) -> None:
    notes.add_refused(refused(echo, detail="412 s old"))
    assert not RefusedCall.objects.exists()
    notes.write()

    kept = RefusedCall.objects.get()
    assert (kept.hook, kept.script, kept.organisation) == (
        echo.hook,
        echo.hook.script,
        echo.hook.script.organisation,
    )
    assert (kept.at, kept.reason, kept.detail) == (NOON, "SignatureMismatch", "412 s old")
    assert (kept.client_address, kept.method) == ("192.0.2.1", "POST")
    assert kept.header_names == ["Content-Type", "X-Sig", "Authorization"]
    content = content_of(kept)
    assert content is not None
    assert content.headers == (("Content-Type", "text/plain"), ("X-Sig", "abc"))
    assert (content.query, content.url, content.body) == ("a=1", "", b"\0payload")
    assert b"payload" not in bytes(kept.content_ciphertext or b"")


def test_an_organisation_keeps_no_more_contents_than_its_newest(
    notes: CallNotes, echo: IssuedHook, globex: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "NEWEST_OF_ORGANISATION", 3)
    notes.add_refused(refused(make_hook(make_script(globex))))
    for _ in range(7):
        notes.add_refused(refused(make_hook(echo.hook.script)))
    notes.add_refused(wrong_token(echo, "x" * 40))
    notes.write()

    of_acme = RefusedCall.objects.of_organisation(echo.hook.script.organisation)
    assert [content_of(each) is not None for each in of_acme] == [True] * 3 + [False] * 5
    assert content_of(RefusedCall.objects.of_organisation(globex).get()) is not None


def test_its_content_cannot_be_moved_to_another_row(notes: CallNotes, echo: IssuedHook) -> None:
    add_many(notes, 2, echo)
    notes.write()
    newer, older = RefusedCall.objects.all()
    older.content_ciphertext = newer.content_ciphertext

    assert content_of(newer) is not None
    assert content_of(older) is None


def test_the_newest_20_are_kept_and_the_content_of_5(notes: CallNotes, echo: IssuedHook) -> None:
    other = make_hook(echo.hook.script)
    notes.add_refused(refused(other))
    add_many(notes, 25, echo)
    notes.write()

    kept = RefusedCall.objects.filter(hook=echo.hook)
    assert [each.detail for each in kept] == [f"number {n}" for n in range(24, 4, -1)]
    assert [content_of(each) is not None for each in kept] == [True] * 5 + [False] * 15
    assert content_of(RefusedCall.objects.get(hook=other.hook)) is not None


@pytest.mark.parametrize(("size", "is_kept"), [(256 * 1024, True), (256 * 1024 + 1, False)])
def test_a_large_body_is_not_kept(
    notes: CallNotes, echo: IssuedHook, size: int, is_kept: bool
) -> None:
    notes.add_refused(refused(echo, body=b"x" * size))
    notes.write()

    content = content_of(RefusedCall.objects.get())
    assert content is not None
    assert (content.body is not None) == is_kept


def test_a_flood_is_counted_and_ten_a_second_are_kept(
    notes: CallNotes, echo: IssuedHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = int(time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: second + 0.1)
    flood(notes, 35, refused(echo))
    flood(notes, 5, refused(echo, reason="TimestampTooOld", at=NOON - timedelta(days=1)))
    notes.write()
    monkeypatch.setattr(time, "monotonic", lambda: second + 0.9)
    notes.add_refused(refused(echo))
    notes.write()

    assert RefusedCall.objects.count() == 10
    counts = RefusalCount.objects.order_by("count").values_list("subject", "reason", "count")
    assert list(counts) == [
        (echo.hook.pk, "TimestampTooOld", 5),
        (echo.hook.pk, "SignatureMismatch", 36),
    ]

    monkeypatch.setattr(time, "monotonic", lambda: second + 1.0)
    notes.add_refused(refused(echo))
    notes.write()

    assert RefusedCall.objects.count() == 11


def test_no_more_waits_than_there_is_room_for(
    notes: CallNotes, echo: IssuedHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "MAX_WAITING", 3)
    add_many(notes, 5, echo)
    notes.write()
    monkeypatch.setattr(collector, "MAX_WAITING_BYTES", 20)
    add_many(notes, 3, echo)
    notes.write()

    # Three, and two of eight bytes.
    assert RefusedCall.objects.count() == 5
    assert RefusalCount.objects.get().count == 8


def test_a_token_that_no_hook_has_is_kept_under_the_script(
    notes: CallNotes, echo: IssuedHook
) -> None:
    token = credentials.generate_secret(SecretKind.CALL_TOKEN)
    notes.add_refused(wrong_token(echo, token))
    notes.write()

    kept = RefusedCall.objects.get()
    assert (kept.hook, kept.script) == (None, echo.hook.script)
    assert kept.detail == f"ending in …{token[-4:]}"
    assert token not in str(RefusedCall.objects.values().get())
    assert RefusalCount.objects.get().subject == echo.hook.script_id


@pytest.mark.parametrize(
    ("cut", "detail"),
    [(slice(-1), "ending in …{end}, cut or mistyped"), (slice(6), "too short, cut or mistyped")],
)
def test_a_token_that_was_cut_is_told_apart(
    notes: CallNotes, echo: IssuedHook, cut: slice, detail: str
) -> None:
    token = echo.call_token[cut]
    notes.add_refused(wrong_token(echo, token))
    notes.write()

    assert RefusedCall.objects.get().detail == detail.format(end=token[-4:])


def test_the_token_before_a_rotation_is_told_apart(notes: CallNotes, echo: IssuedHook) -> None:
    rotated = rotate_call_token(echo.hook)
    notes.add_refused(wrong_token(echo, echo.call_token))
    notes.write()

    kept = RefusedCall.objects.get()
    assert kept.hook == echo.hook
    at = f"{rotated.hook.previous_valid_until:%Y-%m-%d %H:%M} UTC"
    end = echo.call_token[-4:]
    assert kept.detail == f"ending in …{end}, the one before the rotation of {at}"


@pytest.mark.parametrize("what", ["a hook", "a script", "an organisation"])
def test_the_token_of_what_is_switched_off_is_told_apart(
    notes: CallNotes, echo: IssuedHook, what: str
) -> None:
    if what == "a hook":
        update_hook(echo.hook, is_enabled=False)
    elif what == "a script":
        Script.objects.update(is_enabled=False)
    else:
        Organisation.objects.update(is_active=False)
    notes.add_refused(wrong_token(echo, echo.call_token))
    notes.write()

    kept = RefusedCall.objects.get()
    assert kept.hook == echo.hook
    assert kept.detail.endswith(f", of {what} that is switched off")


@pytest.mark.parametrize("unknown", ["script_id", "organisation_id"])
def test_nothing_is_kept_of_addresses_that_do_not_exist(
    notes: CallNotes, echo: IssuedHook, unknown: str
) -> None:
    token = credentials.generate_secret(SecretKind.CALL_TOKEN)
    notes.add_refused(wrong_token(echo, token))
    notes.write()
    assert RefusedCall.objects.count() == RefusalCount.objects.get().count == 1

    notes.add_refused(wrong_token(echo, token, **{unknown: uuid.uuid4()}))
    notes.write()

    assert RefusedCall.objects.count() == RefusalCount.objects.get().count == 1


def test_nothing_is_kept_of_calls_of_a_deleted_script(notes: CallNotes, echo: IssuedHook) -> None:
    delete_script(echo.hook.script)
    notes.add_refused(wrong_token(echo, echo.call_token))
    notes.write()

    assert not RefusedCall.objects.exists()
    assert not RefusalCount.objects.exists()


def shake_hands(notes: CallNotes, hook: Hook, number: int) -> None:
    """Once a second."""
    for second in range(number):
        at = NOON + timedelta(seconds=second)
        notes.add_handshake(HandshakeNote(hook.pk, at, "x", "192.0.2.1", 200))


def test_the_newest_five_handshakes_are_kept(notes: CallNotes, echo: IssuedHook) -> None:
    shake_hands(notes, echo.hook, 7)
    notes.write()

    seconds = [each.at.second for each in AnsweredHandshake.objects.filter(hook=echo.hook)]
    assert seconds == [6, 5, 4, 3, 2]


def test_uses_of_a_credential_are_added_up(notes: CallNotes, echo: IssuedHook) -> None:
    credential = UsedCredential(echo.hook.pk, "digest")
    notes.add_use(credential, NOON + timedelta(minutes=1), "192.0.2.1")
    notes.add_use(credential, NOON + timedelta(minutes=2), "192.0.2.2")
    notes.write()
    use = CredentialUse.objects.get()
    assert (use.count, use.last_used_from) == (2, "192.0.2.2")
    late = CallNotes()
    late.add_use(credential, NOON, "")
    late.write()

    use = CredentialUse.objects.get()
    assert (use.hook, use.credential, use.count) == (echo.hook, "digest", 3)
    assert (use.last_used_at, use.last_used_from) == (NOON + timedelta(minutes=2), None)


def test_a_database_that_is_gone_is_reported_once(
    notes: CallNotes,
    echo: IssuedHook,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*arguments: object) -> None:
        raise OperationalError("no\ndatabase")

    with monkeypatch.context() as outage:
        outage.setattr(collector, "store", fail)
        notes.add_refused(refused(echo))
        notes.write()
        notes.add_refused(refused(echo))
        notes.write()
    notes.add_refused(refused(echo))
    notes.write()

    assert caplog.messages == ["Refused calls are not noted: no database"]
    assert RefusedCall.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_thread_writes_them_and_the_rest_at_its_end(
    notes: CallNotes, echo: IssuedHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "WRITE_SECONDS", 0.05)
    notes.start()
    notes.add_refused(refused(echo))
    eventually(RefusedCall.objects.exists)
    monkeypatch.setattr(collector, "WRITE_SECONDS", 60)
    notes.add_refused(refused(echo))
    notes.add_use(UsedCredential(echo.hook.pk, "digest"), NOON, "")
    notes.stop()

    assert RefusedCall.objects.count() == 2
    assert CredentialUse.objects.get().count == 1
    assert "call notes" not in [thread.name for thread in threading.enumerate()]
