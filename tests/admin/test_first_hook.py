"""A hook created with its sender on one page, in the admin."""

import html
import re
from typing import Any

import pytest
from django.contrib.sessions.models import Session as AdminSession

from accounts.models import AuthEvent, Organisation
from hooks.audit_kinds import HookEvent
from hooks.call_sender import open_secret
from hooks.models import Hook, SigningSecret
from hooks.senders import PRESETS
from scripts_engine.models import Release, Run, Script
from tests.admin.pages import CONFIRMED, list_of, page_of, text_of
from tests.client import Client
from tests.factories import make_script
from tests.hooks.github import BODY, signed
from tests.written import nothing_written

TOKEN = re.compile(r"mhc_\w{46}")
ADD = list_of(Hook, "add")
OURS = sorted(name for name, preset in PRESETS.items() if preset.takes_any_secret)


@pytest.fixture
def globex_script(globex: Organisation) -> Script:
    return make_script(globex, "return 1", "of globex")


def create(client: Client, script: Script, sender: str, **typed: str) -> Any:
    return client.post(ADD, {"script": str(script.pk), "sender": sender, **typed}, follow=True)


def words_of(response: Any) -> str:
    return html.unescape(text_of(response))


def token_in(response: Any) -> str:
    found = TOKEN.search(text_of(response))
    assert found is not None
    return found[0]


def secret_of(hook: Hook) -> str:
    secret = open_secret(hook.pk, bytes(SigningSecret.objects.get(hook=hook).ciphertext))
    assert secret is not None
    return secret


def test_every_sender_has_a_tile(as_bob: Client) -> None:
    text = words_of(as_bob.get(ADD))

    assert all(f'name="sender" value="{name}"' in text for name in ["", *PRESETS])
    assert 'value="" required checked' not in text


def test_the_script_of_the_page_before_is_known(as_bob: Client, acme_script: Script) -> None:
    response = as_bob.get(list_of(Hook, "add"), {"script": str(acme_script.pk)})

    assert f"The hook runs “{acme_script}”." in words_of(response)


def test_a_script_of_others_is_not_known(as_bob: Client, globex_script: Script) -> None:
    response = as_bob.get(list_of(Hook, "add"), {"script": str(globex_script.pk)})

    assert str(globex_script.pk) not in text_of(response)


def test_one_post_makes_hook_sender_and_secret_as_one_release(
    as_bob: Client, acme_script: Script
) -> None:
    releases = Release.objects.count()

    shown = create(as_bob, acme_script, "github")

    hook, text = Hook.objects.get(), words_of(shown)
    url = hook.url_with(token_in(shown))
    assert (hook.name, hook.sender, hook.methods) == ("GitHub", "github", ["POST"])
    assert f"Paste {url} as Payload URL" in re.sub("</?code[^>]*>", "", text)
    assert f"Enter {secret_of(hook)} as Secret" in re.sub("</?code[^>]*>", "", text)
    assert "Waiting for the first call." in text
    assert Release.objects.count() == releases + 1
    kinds = set(AuthEvent.objects.values_list("kind", flat=True))
    assert kinds >= {
        HookEvent.CALL_TOKEN_ISSUED,
        HookEvent.SENDER_SET,
        HookEvent.SIGNING_SECRET_SET,
    }


def test_a_call_signed_with_the_shown_secret_is_verified(
    as_bob: Client, acme_script: Script
) -> None:
    shown = create(as_bob, acme_script, "github")

    hook = Hook.objects.get()
    path = hook.url_with(token_in(shown)).partition("/hook/")[2]
    answer = Client().post(
        f"/hook/{path}",
        BODY,
        content_type="application/json",
        headers=signed(BODY, secret=secret_of(hook)),
    )

    assert answer.status_code == 200
    assert Run.objects.get().verified == "signed"
    newest = as_bob.get(page_of(hook, "newest_call")).json()["calls"]
    assert [call["state"] for call in newest] == ["verified"]


@pytest.mark.parametrize("sender", OURS)
def test_a_secret_that_we_may_choose_is_generated(
    as_bob: Client, acme_script: Script, sender: str
) -> None:
    shown = create(as_bob, acme_script, sender)

    secret = secret_of(Hook.objects.get())
    assert re.fullmatch("[0-9a-f]{64}", secret)
    assert f'<code class="mh-value">{secret}</code>' in text_of(shown)


@pytest.mark.parametrize("sender", sorted({*PRESETS} - {*OURS, "hmac"}))
def test_a_secret_of_the_sender_has_a_field_or_is_not_needed(
    as_bob: Client, acme_script: Script, sender: str
) -> None:
    shown = create(as_bob, acme_script, sender)

    assert not SigningSecret.objects.exists()
    is_entered = PRESETS[sender].takes_secret and sender != "asana"
    assert ('name="value"' in text_of(shown)) == is_entered
    assert Hook.objects.get().sender == sender


def test_the_secrets_are_in_that_response_only(as_bob: Client, acme_script: Script) -> None:
    shown = create(as_bob, acme_script, "github")

    hook = Hook.objects.get()
    secret = secret_of(hook)
    assert "no-store" in shown["Cache-Control"]
    assert secret not in str([session.get_decoded() for session in AdminSession.objects.all()])
    assert secret not in text_of(as_bob.get(page_of(hook, "issued")))
    assert secret not in text_of(as_bob.get(page_of(hook)))


def test_setting_the_senders_secret_returns_to_the_url(as_bob: Client, acme_script: Script) -> None:
    token = token_in(create(as_bob, acme_script, "stripe"))
    hook = Hook.objects.get()
    form = {"value": "whsec_of_stripe", "overlap_seconds": "86400", "call_token": token}

    shown = as_bob.post(page_of(hook, "secret"), form, follow=True)

    assert secret_of(hook) == "whsec_of_stripe"
    assert hook.url_with(token) in words_of(shown)
    assert 'name="value"' not in text_of(shown)
    assert "whsec_of_stripe" not in text_of(shown)


def test_a_refused_secret_keeps_the_url(as_bob: Client, acme_script: Script) -> None:
    token = token_in(create(as_bob, acme_script, "gitlab"))
    hook = Hook.objects.get()
    form = {"overlap_seconds": "86400", "call_token": token}
    refused = as_bob.post(page_of(hook, "secret"), {**form, "value": "not one of theirs"})

    assert "Enter whsec_" in words_of(refused)
    assert f'name="call_token" value="{token}"' in text_of(refused)
    assert not SigningSecret.objects.exists()


def test_a_token_of_another_hook_shows_no_url(as_bob: Client, acme_script: Script) -> None:
    other = token_in(create(as_bob, acme_script, "github"))
    create(as_bob, acme_script, "stripe")
    hook = Hook.objects.get(sender="stripe")
    form = {"value": "whsec_of_stripe", "overlap_seconds": "86400", "call_token": other}

    shown = as_bob.post(page_of(hook, "secret"), form, follow=True)

    assert shown.redirect_chain[-1][0] == page_of(hook)
    assert other not in text_of(shown)


def test_the_handshake_of_asana_is_expected_without_leaving_the_url(
    as_bob: Client, acme_script: Script
) -> None:
    token = token_in(create(as_bob, acme_script, "asana"))
    hook = Hook.objects.get()

    shown = as_bob.post(page_of(hook, "expect"), {**CONFIRMED, "call_token": token}, follow=True)

    hook.refresh_from_db()
    assert hook.handshake_expected_until is not None
    assert hook.url_with(token) in words_of(shown)


def test_an_unlisted_sender_brings_its_options(as_bob: Client, acme_script: Script) -> None:
    options = {"header": "X-Signature", "algorithm": "sha256", "encoding": "hex"}

    create(as_bob, acme_script, "hmac", **options, secretEncoding="text", template="")

    hook = Hook.objects.get()
    assert hook.hmac is not None
    assert (hook.name, hook.hmac["header"], hook.hmac["template"]) == (
        "Hook",
        "X-Signature",
        "{body}",
    )


def test_an_unlisted_sender_without_a_header_makes_nothing(
    as_bob: Client, acme_script: Script
) -> None:
    with nothing_written():
        response = create(as_bob, acme_script, "hmac")

    assert "Enter the name of a header." in words_of(response)
    assert 'value="hmac" required checked' in text_of(response)


def test_an_unknown_sender_makes_nothing(as_bob: Client, acme_script: Script) -> None:
    with nothing_written():
        response = create(as_bob, acme_script, "nobody-we-know")

    assert response.status_code == 200


def test_a_script_of_others_gets_no_hook(as_bob: Client, globex_script: Script) -> None:
    with nothing_written():
        response = create(as_bob, globex_script, "github")

    assert "not one of the available choices" in words_of(response)


def test_without_a_sender_any_call_is_awaited(as_bob: Client, acme_script: Script) -> None:
    shown = create(as_bob, acme_script, "", name="shop")

    hook = Hook.objects.get()
    path = hook.url_with(token_in(shown)).partition("/hook/")[2]
    Client().post(f"/hook/{path}", b"x", content_type="text/plain")
    assert "Waiting for the first call." in words_of(shown)
    newest = as_bob.get(page_of(hook, "newest_call")).json()["calls"]
    assert [call["state"] for call in newest] == ["called"]
