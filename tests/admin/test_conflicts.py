"""Forms of rows that somebody else has changed meanwhile: who, when, and nothing typed is lost."""

import html
import re
from typing import Any

import pytest
from django.db.models import Model

from accounts.audit import person
from accounts.flows.organisations import save_organisation
from accounts.models import AuthEvent, Membership, Organisation
from core.http.origin import Origin
from hooks.flows.hooks import update_hook
from hooks.flows.senders import set_sender
from hooks.models import Hook
from jobs.schedules.schedules import create_schedule, update_schedule
from scripts_engine.models import Release, Script, Secret, StoredValue
from scripts_engine.secrets import set_secret
from scripts_engine.stored_values import fingerprint, set_stored_value
from tests.admin.pages import nothing_inlined, page_of, text_of
from tests.client import Client
from tests.factories import make_hook, make_user


@pytest.fixture
def by_carol(acme: Organisation) -> Origin:
    return Origin(actor=person(make_user(acme, "carol@example.com")))


def revision_on(page: str) -> int:
    found = re.search(r'name="expected_revision" value="(\d+)"', page)
    assert found is not None, page
    return int(found[1])


def page_text(response: Any) -> str:
    return html.unescape(text_of(response))


def save(client: Client, row: Model, form: dict[str, Any], page: str = "change") -> Any:
    return client.post(page_of(row, page) if page != "change" else page_of(row), form)


def test_a_hooks_form_tells_who_changed_it_and_keeps_what_was_typed(
    as_bob: Client, acme_script: Script, by_carol: Origin
) -> None:
    hook = make_hook(acme_script).hook
    seen = revision_on(text_of(as_bob.get(page_of(hook))))
    update_hook(hook, name="theirs", origin=by_carol)
    events = AuthEvent.objects.count()
    typed = {"name": "mine", "is_enabled": "on", "expected_revision": seen}

    response = save(as_bob, hook, typed)

    text = page_text(response)
    assert response.status_code == 200
    assert "“theirs” was changed by carol@example.com at" in text
    assert "Name: theirs" in text
    assert 'value="mine"' in text
    assert Hook.objects.get().name == "theirs"
    assert AuthEvent.objects.count() == events

    again = {**typed, "expected_revision": revision_on(text)}
    assert save(as_bob, hook, again).status_code == 302
    assert Hook.objects.get().name == "mine"


def test_a_save_of_a_form_is_one_release(as_bob: Client, acme_script: Script) -> None:
    hook = make_hook(acme_script).hook
    releases = Release.objects.count()

    save(as_bob, hook, {"name": "mine", "expected_revision": 1})

    hook.refresh_from_db()
    assert (hook.name, hook.is_enabled) == ("mine", False)
    assert Release.objects.count() == releases + 1


def test_the_limits_form_tells_a_conflict(
    as_bob: Client, acme_script: Script, by_carol: Origin
) -> None:
    hook = make_hook(acme_script).hook
    seen = revision_on(text_of(as_bob.get(page_of(hook, "limits"))))
    update_hook(hook, calls_per_minute=60, origin=by_carol)
    typed = {
        "methods": ["GET", "POST"],
        "calls_per_minute": 70,
        "expected_revision": seen,
    }

    text = page_text(save(as_bob, hook, typed, "limits"))

    assert "changed by carol@example.com" in text
    assert "Calls per minute: 60" in text
    assert 'value="70"' in text
    assert Hook.objects.get().calls_per_minute == 60
    save(as_bob, hook, {**typed, "expected_revision": revision_on(text)}, "limits")
    assert Hook.objects.get().calls_per_minute == 70


def test_the_senders_form_tells_a_conflict(
    as_bob: Client, acme_script: Script, by_carol: Origin
) -> None:
    hook = make_hook(acme_script).hook
    set_sender(hook, sender="github", origin=by_carol)

    text = page_text(save(as_bob, hook, {"sender": "stripe", "expected_revision": 1}, "sender"))
    removed = as_bob.post(
        page_of(hook, "sender"), {"sender": "", "expected_revision": 1}, follow=True
    )

    assert "changed by carol@example.com" in text
    assert "changed by carol@example.com" in page_text(removed)
    assert Hook.objects.get().sender == "github"


def test_a_schedules_form_tells_a_conflict(
    as_bob: Client, acme_script: Script, by_carol: Origin
) -> None:
    schedule = create_schedule(acme_script, name="nightly", cron="0 0 * * *")
    seen = revision_on(text_of(as_bob.get(page_of(schedule))))
    update_schedule(schedule, cron="0 1 * * *", origin=by_carol)
    typed = {
        "name": "nightly",
        "cron": "0 2 * * *",
        "time_zone": "UTC",
        "is_enabled": "on",
        "body": "typed payload",
        "overlap": "skip",
        "catch_up": "latest",
        "catch_up_window_seconds": 3600,
        "expected_revision": seen,
    }

    text = page_text(save(as_bob, schedule, typed))

    assert "changed by carol@example.com" in text
    assert "Cron: 0 1 * * *" in text
    assert "typed payload" in text
    schedule.refresh_from_db()
    assert (schedule.cron, schedule.revision) == ("0 1 * * *", 2)
    save(as_bob, schedule, {**typed, "expected_revision": revision_on(text)})
    schedule.refresh_from_db()
    assert (schedule.cron, bytes(schedule.payload)) == ("0 2 * * *", b"typed payload")


def test_a_secrets_form_tells_a_conflict_and_shows_no_value(
    as_bob: Client, acme: Organisation, by_carol: Origin
) -> None:
    secret = set_secret(acme, name="KEY", value="first")
    seen = revision_on(text_of(as_bob.get(page_of(secret))))
    set_secret(acme, name="KEY", value="hush-hush", origin=by_carol)
    stored = bytes(Secret.objects.get().ciphertext)

    text = page_text(save(as_bob, secret, {"value": "mine", "expected_revision": seen}))

    assert "changed by carol@example.com" in text
    assert "hush-hush" not in text
    assert bytes(Secret.objects.get().ciphertext) == stored
    save(as_bob, secret, {"value": "mine", "expected_revision": revision_on(text)})
    assert Secret.objects.get().revision == 3


def test_a_stored_values_form_tells_a_conflict(
    as_bob: Client, acme: Organisation, by_carol: Origin
) -> None:
    def set_value(value: str, seen: str) -> StoredValue:
        return set_stored_value(
            acme, key=b"k", value=value, expires_at=None, seen=seen, origin=by_carol
        )

    stored = set_value("1", "absent")
    page = text_of(as_bob.get(page_of(stored)))
    typed = {
        "entered_as": "json",
        "typed_value": "3",
        "seen": fingerprint(stored),
        "expected_revision": revision_on(page),
    }
    set_value("2", fingerprint(stored))

    text = page_text(save(as_bob, stored, typed))

    assert "changed by carol@example.com" in text
    assert StoredValue.objects.get().value == "2"
    seen = re.search(r'name="seen" value="(\w+)"', text)
    assert seen is not None
    again = {**typed, "expected_revision": revision_on(text), "seen": seen[1]}
    assert save(as_bob, stored, again).status_code == 302
    assert (StoredValue.objects.get().value, StoredValue.objects.get().revision) == ("3", 3)


def test_an_organisations_form_tells_a_conflict_and_saves_nothing(
    as_root: Client, acme: Organisation, by_carol: Origin
) -> None:
    seen = revision_on(text_of(as_root.get(page_of(acme))))
    theirs = Organisation.objects.get()
    theirs.runs_kept = 500
    save_organisation(theirs, ["runs_kept"], origin=by_carol)
    events, members = AuthEvent.objects.count(), Membership.objects.count()
    typed = {
        "name": "Acme",
        "is_active": "on",
        "runs_kept": "9000",
        "run_bytes_quota": "77",
        "expected_revision": seen,
        **nothing_inlined(),
    }

    refused = save(as_root, acme, typed)

    text = page_text(refused)
    assert refused.status_code == 200
    assert "“Acme” was changed by carol@example.com at" in text
    assert "It holds now: Maximum number of runs: 500." in text
    assert 'value="9000"' in text
    acme.refresh_from_db()
    assert (acme.runs_kept, acme.run_bytes_quota, acme.revision) == (500, None, 2)
    assert (AuthEvent.objects.count(), Membership.objects.count()) == (events, members)

    again = {**typed, "expected_revision": revision_on(text)}
    assert save(as_root, acme, again).status_code == 302
    acme.refresh_from_db()
    assert (acme.runs_kept, acme.run_bytes_quota, acme.revision) == (9000, 77, 3)


def test_an_administrators_form_of_an_organisation_tells_a_conflict(
    as_bob: Client, acme: Organisation, by_carol: Origin
) -> None:
    seen = revision_on(text_of(as_bob.get(page_of(acme))))
    theirs = Organisation.objects.get()
    theirs.failure_mails = True
    save_organisation(theirs, ["failure_mails"], origin=by_carol)

    typed = {"name": "Acme Ltd", "expected_revision": seen, **nothing_inlined()}
    text = page_text(save(as_bob, acme, typed))

    assert "“Acme” was changed by carol@example.com at" in text
    acme.refresh_from_db()
    assert (acme.name, acme.failure_mails) == ("Acme", True)


def test_an_organisation_saved_without_a_change_keeps_its_revision(
    as_bob: Client, acme: Organisation
) -> None:
    events = AuthEvent.objects.count()

    assert save(as_bob, acme, {"name": "Acme", **nothing_inlined()}).status_code == 302

    acme.refresh_from_db()
    assert (acme.revision, acme.revised_by) == (1, "")
    assert AuthEvent.objects.count() == events


def test_a_saved_form_of_an_organisation_overwrites_only_the_changed_fields(
    acme: Organisation, by_carol: Origin
) -> None:
    mine, theirs = Organisation.objects.get(), Organisation.objects.get()
    theirs.runs_kept, mine.failure_mails = 500, True
    save_organisation(theirs, ["runs_kept"], origin=by_carol)

    save_organisation(mine, ["failure_mails"], origin=by_carol)

    acme.refresh_from_db()
    assert (acme.runs_kept, acme.failure_mails, acme.revision) == (500, True, 3)


@pytest.mark.parametrize("sent", ["x", "1.5", "-", "9" * 400])
def test_a_malformed_revision_is_refused(as_bob: Client, acme_script: Script, sent: str) -> None:
    hook = make_hook(acme_script).hook

    response = save(as_bob, hook, {"name": "mine", "expected_revision": sent})

    assert response.status_code == 200
    assert Hook.objects.get().name == "shop"


def test_a_form_without_a_revision_saves(as_bob: Client, acme_script: Script) -> None:
    """As sent by a page of before."""
    hook = make_hook(acme_script).hook

    assert save(as_bob, hook, {"name": "mine"}).status_code == 302
    assert Hook.objects.get().name == "mine"
