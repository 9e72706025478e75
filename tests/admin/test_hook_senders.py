"""Who calls a hook, in the admin: choosing the sender, its secrets, the limits of calls."""

import html
from typing import Any

import pytest
from django.urls import reverse

from accounts.models import AuthEvent, User
from hooks.audit_kinds import HookEvent
from hooks.call_sender import open_secret
from hooks.flows.call_notes import call_notes
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook, RefusedCall, SigningSecret
from hooks.senders import PRESETS, InvalidSecretError, check_secret
from scripts_engine.models import Run
from tests.admin.pages import CONFIRMED, everything, logged_in, page_of, text_of
from tests.client import Client
from tests.factories import make_hook, make_script
from tests.hooks.github import SECRET, call, signed
from tests.written import nothing_written


@pytest.fixture
def as_charlie(charlie: User) -> Client:
    return logged_in(charlie)


def choose(client: Client, hook: Hook, sender: str, **typed: str) -> Any:
    return client.post(page_of(hook, "sender"), {"sender": sender, **typed}, follow=True)


def words_of(response: Any) -> str:
    return html.unescape(text_of(response))


def end_of(secret: SigningSecret) -> str:
    return reverse("admin:hooks_hook_end_secret", args=[secret.hook_id, secret.pk])


@pytest.mark.parametrize("sender", sorted(PRESETS))
def test_every_sender_is_described(as_bob: Client, acme_hook: Hook, sender: str) -> None:
    response = as_bob.get(page_of(acme_hook, "sender"), {"sender": sender})

    assert response.status_code == 200
    assert PRESETS[sender].steps[0] in words_of(response)
    assert PRESETS[sender].page in words_of(response)


def test_bob_says_that_github_calls(as_bob: Client, acme_hook: Hook) -> None:
    shown = choose(as_bob, acme_hook, "github", value=f" {SECRET}\n")

    acme_hook.refresh_from_db()
    secret = SigningSecret.objects.get()
    assert acme_hook.sender == "github"
    assert open_secret(acme_hook.pk, bytes(secret.ciphertext)) == SECRET
    assert "Waiting for the first call." in words_of(shown)
    assert SECRET not in text_of(shown)
    kinds = set(AuthEvent.objects.values_list("kind", flat=True))
    assert {HookEvent.SENDER_SET, HookEvent.SIGNING_SECRET_SET} <= kinds


def test_a_secret_of_the_wrong_format_changes_nothing(as_bob: Client, acme_hook: Hook) -> None:
    before = everything()

    response = choose(as_bob, acme_hook, "standard-webhooks", value="not a key of theirs")

    assert everything() == before
    with pytest.raises(InvalidSecretError) as refusal:
        check_secret("standard-webhooks", None, "not a key of theirs")
    assert str(refusal.value) in words_of(response)
    assert "not a key of theirs" not in text_of(response)


def test_options_of_an_unlisted_sender(as_bob: Client, acme_hook: Hook) -> None:
    options = {
        "header": "X-Signature",
        "prefix": "sha256=",
        "algorithm": "sha256",
        "encoding": "hex",
        "template": "{timestamp}.{body}",
        "timestampHeader": "X-Time",
        "idHeader": "",
        "secretEncoding": "text",
    }

    choose(as_bob, acme_hook, "hmac", value="a shared secret", **options)

    acme_hook.refresh_from_db()
    assert acme_hook.sender == "hmac"
    assert acme_hook.hmac["timestampHeader"] == "X-Time"


def test_a_template_without_the_body_is_refused(as_bob: Client, acme_hook: Hook) -> None:
    with nothing_written():
        response = choose(
            as_bob,
            acme_hook,
            "hmac",
            header="X-Signature",
            algorithm="sha256",
            encoding="hex",
            template="{timestamp}",
            secretEncoding="text",
        )
    assert response.status_code == 200


def test_nobody_signs_any_more(as_bob: Client, acme_hook: Hook) -> None:
    choose(as_bob, acme_hook, "github", value=SECRET)

    choose(as_bob, acme_hook, "")

    acme_hook.refresh_from_db()
    assert acme_hook.sender == ""
    assert not SigningSecret.objects.live().exists()


def test_the_verify_token_is_shown_for_meta(as_bob: Client, acme_hook: Hook) -> None:
    before = as_bob.get(page_of(acme_hook, "sender"), {"sender": "meta"})
    choose(as_bob, acme_hook, "meta", value=SECRET)
    after = as_bob.get(page_of(acme_hook, "sender"))

    assert 'id="verify-token"' not in text_of(before)
    assert 'id="verify-token"' in text_of(after)


def test_an_unknown_sender_is_not_found(as_bob: Client, acme_hook: Hook) -> None:
    assert as_bob.get(page_of(acme_hook, "sender"), {"sender": "nobody"}).status_code == 404
    assert choose(as_bob, acme_hook, "nobody").status_code == 404


def test_bob_replaces_and_ends_a_secret(as_bob: Client, acme_hook: Hook) -> None:
    choose(as_bob, acme_hook, "github", value=SECRET)
    form = {"value": "another secret", "overlap_seconds": "3600"}
    as_bob.post(page_of(acme_hook, "secret"), form)
    newest, before = SigningSecret.objects.live()

    asked = as_bob.get(end_of(before))
    assert SigningSecret.objects.live().count() == 2
    as_bob.post(end_of(before), CONFIRMED)

    assert "Revoke signing secret" in words_of(asked)
    assert [*SigningSecret.objects.live()] == [newest]


def newest_calls(client: Client, hook: Hook) -> Any:
    return client.get(page_of(hook, "newest_call")).json()["calls"]


def test_the_first_call_is_reported(as_bob: Client, acme_hook: Hook) -> None:
    issued = make_hook(acme_hook.script)
    set_sender(issued.hook, sender="github")
    set_signing_secret(issued.hook, SECRET)
    (waiting,) = newest_calls(as_bob, issued.hook)

    call(issued)
    (verified,) = newest_calls(as_bob, issued.hook)
    call(issued, headers=signed(b"another body"))
    call_notes.write()
    still_verified, refused = newest_calls(as_bob, issued.hook)

    assert (waiting["state"], waiting["text"]) == ("waiting", "Waiting for the first call.")
    assert still_verified["text"] == verified["text"]
    assert verified["state"] == "verified"
    assert verified["address"] == page_of(Run.objects.get())
    assert refused["state"] == "refused"
    assert refused["address"] == page_of(RefusedCall.objects.get())


def test_the_handshake_of_asana_is_expected(as_bob: Client, acme_hook: Hook) -> None:
    choose(as_bob, acme_hook, "asana")
    asked = as_bob.get(page_of(acme_hook, "expect"))
    acme_hook.refresh_from_db()
    assert acme_hook.handshake_expected_until is None

    as_bob.post(page_of(acme_hook, "expect"), CONFIRMED)

    acme_hook.refresh_from_db()
    assert "Expect the handshake" in words_of(asked)
    assert acme_hook.handshake_expected_until is not None


def limits(**typed: str | list[str]) -> dict[str, str | list[str]]:
    return {"methods": "POST", "idempotency": "body-hash", **typed}


def test_bob_sets_limits(as_bob: Client, acme_hook: Hook) -> None:
    typed = limits(
        allowed_networks="192.0.2.0/24\n2001:db8::/48", calls_per_minute="120", burst="7"
    )

    shown = as_bob.post(page_of(acme_hook, "limits"), typed, follow=True)

    acme_hook.refresh_from_db()
    assert acme_hook.allowed_networks == ["192.0.2.0/24", "2001:db8::/48"]
    assert (acme_hook.methods, acme_hook.idempotency) == (["POST"], "body-hash")
    assert (acme_hook.calls_per_minute, acme_hook.burst) == (120, 7)
    assert "120 a minute, 7 at once" in words_of(shown)


@pytest.mark.parametrize("methods", [["GET", "POST"], ["GET"]], ids=["both", "get"])
def test_bob_cannot_compare_the_bodies_of_anyone_s_get(
    as_bob: Client, acme_hook: Hook, methods: list[str]
) -> None:
    shown = as_bob.post(page_of(acme_hook, "limits"), limits(methods=methods))

    acme_hook.refresh_from_db()
    assert "Bodies of GET are empty" in words_of(shown)
    assert acme_hook.idempotency == ""


def test_bob_cannot_remove_a_sender_whose_get_is_compared(as_bob: Client, acme_hook: Hook) -> None:
    choose(as_bob, acme_hook, "github", value=SECRET)
    as_bob.post(page_of(acme_hook, "limits"), limits(methods="GET"))

    shown = as_bob.post(page_of(acme_hook, "sender"), {"sender": ""}, follow=True)

    acme_hook.refresh_from_db()
    assert "Bodies of GET are empty" in words_of(shown)
    assert "Signatures are no longer checked" not in words_of(shown)
    assert (acme_hook.sender, SigningSecret.objects.live().count()) == ("github", 1)


def test_bob_lets_callers_not_wait(as_bob: Client, acme_hook: Hook) -> None:
    before = as_bob.get(page_of(acme_hook, "limits"))
    typed = limits(reply_mode="accepted", accepted_status="201", max_attempts="3")
    shown = as_bob.post(page_of(acme_hook, "limits"), typed, follow=True)

    acme_hook.refresh_from_db()
    assert 'placeholder="202"' in text_of(before)
    assert (acme_hook.reply_mode, acme_hook.accepted_status) == ("accepted", 201)
    assert acme_hook.max_attempts == 3
    assert "201 as soon as the run is queued" in words_of(shown)


@pytest.mark.parametrize(
    "typed",
    [
        {"allowed_networks": "192.0.2.0/99"},
        {"max_body_bytes": "0"},
        {"max_body_bytes": "9999999999"},
        {"calls_per_minute": "-1"},
        {"tolerance_seconds": "5"},
        {"idempotency": "event-id"},
        {"event_id_pointers": "/event/id"},
        {"signed_url": "not a url"},
        {"methods": "HEAD"},
        {"reply_mode": "later"},
        {"accepted_status": "300"},
        {"accepted_status": "199"},
        {"max_attempts": "0"},
        {"max_attempts": "21"},
    ],
    ids=str,
)
def test_wrong_limits_change_nothing(
    as_bob: Client, acme_hook: Hook, typed: dict[str, str]
) -> None:
    with nothing_written():
        response = as_bob.post(page_of(acme_hook, "limits"), limits() | typed)

    assert response.status_code == 200


PAGES = ("sender", "secret", "expect", "newest_call", "limits")


@pytest.mark.parametrize("page", PAGES)
def test_another_organisations_hook_is_not_found(
    as_charlie: Client, acme_hook: Hook, page: str
) -> None:
    set_sender(acme_hook, sender="asana")
    with nothing_written():
        form = {
            "sender": "github",
            "value": SECRET,
            "overlap_seconds": "0",
            **CONFIRMED,
            **limits(),
        }

        assert as_charlie.get(page_of(acme_hook, page)).status_code == 404
        assert as_charlie.post(page_of(acme_hook, page), form).status_code in (404, 405)


def test_a_secret_cannot_be_ended_through_another_hook(
    as_bob: Client, as_charlie: Client, acme_hook: Hook
) -> None:
    set_sender(acme_hook, sender="github")
    secret = set_signing_secret(acme_hook, SECRET)
    other = make_hook(make_script(acme_hook.organisation)).hook
    through_another = reverse("admin:hooks_hook_end_secret", args=[other.pk, secret.pk])
    with nothing_written():
        assert as_charlie.post(end_of(secret), CONFIRMED).status_code == 404
        assert as_bob.post(through_another, CONFIRMED).status_code == 404
