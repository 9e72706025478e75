"""Call tokens that are kept while a sender signs the calls, and the URL shown again."""

import time
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuthEvent, Organisation, Role
from hooks.flows.hooks import IssuedHook, rotate_call_token, shown_again, update_hook
from hooks.flows.senders import issue_hook_with_sender, set_sender
from hooks.models import Hook
from tests.admin.pages import CONFIRMED, logged_in, page_of, prove, text_of
from tests.admin.roles import make_staff
from tests.factories import admin_graphql, make_hook, make_script
from tests.written import nothing_written

HMAC = {"header": "X-Signature"}


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@pytest.fixture
def signed(acme: Organisation) -> Hook:
    return issue_hook_with_sender(make_script(acme), sender="github").hook


@pytest.fixture
def as_ann(acme: Organisation) -> Client:
    """An Author of Acme."""
    return logged_in(make_staff(acme, Role.AUTHOR))


def stored(hook: Hook) -> Hook:
    return Hook.objects.get(pk=hook.pk)


def test_a_hook_with_a_signing_sender_keeps_its_token(acme: Organisation) -> None:
    issued = issue_hook_with_sender(make_script(acme), sender="github")

    again = shown_again(stored(issued.hook))

    assert again is not None
    assert again.call_token == issued.call_token
    assert issued.call_token.encode() not in bytes(stored(issued.hook).call_token_ciphertext or b"")


@pytest.mark.parametrize("sender", ["gitlab-token", "mailgun", "cloudevents"])
def test_a_weaker_sender_keeps_none(acme: Organisation, sender: str) -> None:
    hook = issue_hook_with_sender(make_script(acme), sender=sender).hook

    assert stored(hook).call_token_ciphertext is None
    assert shown_again(stored(hook)) is None


def test_without_a_sender_none_is_kept(acme: Organisation) -> None:
    issued = make_hook(make_script(acme))

    assert stored(issued.hook).call_token_ciphertext is None
    rotate_call_token(issued.hook)
    assert stored(issued.hook).call_token_ciphertext is None


def test_a_rotation_keeps_the_new_token(signed: Hook) -> None:
    rotated = rotate_call_token(signed)

    again = shown_again(stored(signed))
    assert again is not None
    assert again.call_token == rotated.call_token


def test_a_hook_that_gets_its_sender_later_keeps_the_next_token(acme: Organisation) -> None:
    issued = make_hook(make_script(acme))
    set_sender(issued.hook, sender="github")
    assert stored(issued.hook).call_token_ciphertext is None

    rotate_call_token(issued.hook)

    assert shown_again(stored(issued.hook)) is not None


@pytest.mark.parametrize("sender", [None, "gitlab-token", "mailgun"])
def test_a_weaker_sender_deletes_it_and_asks_for_a_rotation(
    signed: Hook, acme_token: str, sender: str | None
) -> None:
    set_sender(signed, sender=sender)

    hook = stored(signed)
    assert (hook.call_token_ciphertext, hook.needs_rotation) == (None, True)
    document = "{ hooks { nodes { needsRotation } } }"
    assert admin_graphql(document, acme_token).data["hooks"]["nodes"] == [{"needsRotation": True}]
    rotate_call_token(hook)
    assert stored(signed).needs_rotation is False


def test_another_signing_sender_keeps_it(signed: Hook) -> None:
    set_sender(signed, sender="hmac", hmac=HMAC)
    update_hook(signed, calls_per_minute=60)

    hook = stored(signed)
    assert hook.needs_rotation is False
    assert shown_again(hook) is not None


def test_a_token_of_another_hook_is_not_shown(signed: Hook, acme: Organisation) -> None:
    other = issue_hook_with_sender(make_script(acme, name="other"), sender="github").hook
    Hook.objects.filter(pk=signed.pk).update(
        call_token_ciphertext=stored(other).call_token_ciphertext
    )

    assert shown_again(stored(signed)) is None


def test_an_author_sees_the_url_again_and_it_is_audited(acme: Organisation, as_ann: Client) -> None:
    issued = issue_hook_with_sender(make_script(acme), sender="github")
    address = page_of(issued.hook, "show_url")

    page = text_of(as_ann.get(page_of(issued.hook)))
    asked = as_ann.get(address)
    shown = as_ann.post(address, CONFIRMED)

    assert address in page
    assert issued.call_token not in page + text_of(asked)
    assert issued.hook.url_with(issued.call_token) in text_of(shown)
    assert "shown only once" not in text_of(shown)
    assert "no-store" in shown["Cache-Control"]
    event = AuthEvent.objects.get(kind="call-token.shown")
    assert issued.call_token not in str(vars(event))


def test_it_asks_for_a_fresh_proof(signed: Hook, as_ann: Client) -> None:
    prove(as_ann, time.time() - 3600)

    response = as_ann.post(page_of(signed, "show_url"), CONFIRMED)

    assert response.status_code == 302
    assert "step_up" in response["Location"]
    assert not AuthEvent.objects.filter(kind="call-token.shown").exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_lower_roles_do_not_see_it(acme: Organisation, signed: Hook, role: Role) -> None:
    client = logged_in(make_staff(acme, role))
    with nothing_written():
        response = client.post(page_of(signed, "show_url"), CONFIRMED)

    assert response.status_code == 403
    assert page_of(signed, "show_url") not in text_of(client.get(page_of(signed)))


def test_administrators_of_others_find_no_hook(signed: Hook, globex: Organisation) -> None:
    client = logged_in(make_staff(globex, Role.ADMINISTRATOR))
    with nothing_written():
        response = client.post(page_of(signed, "show_url"), CONFIRMED)

    assert response.status_code == 404


def test_a_hook_without_a_kept_token_says_so(acme: Organisation, as_ann: Client) -> None:
    issued: IssuedHook = make_hook(make_script(acme))

    response = as_ann.post(page_of(issued.hook, "show_url"), CONFIRMED, follow=True)

    assert "The call token of this hook is not kept." in text_of(response)
    assert page_of(issued.hook, "show_url") not in text_of(as_ann.get(page_of(issued.hook)))
