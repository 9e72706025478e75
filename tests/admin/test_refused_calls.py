"""Refused calls in the admin: what is wrong, what was sent, and running it after all."""

import html
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook, RefusalCount, RefusedCall
from scripts_engine.models import Run, Script
from tests.admin.pages import CONFIRMED, list_of, logged_in, page_of, text_of
from tests.client import Client
from tests.factories import make_refused_call
from tests.hooks.github import BODY, SECRET, signed
from tests.written import nothing_written


def words_of(response: Any) -> str:
    return html.unescape(text_of(response))


def refused(hook: Hook, secret: str = SECRET) -> RefusedCall:
    """A call that GitHub signed with the secret, refused because the hook had another."""
    set_sender(hook, sender="github")
    set_signing_secret(hook, "not the secret", overlap_seconds=0)
    headers = tuple(signed(BODY, secret=secret).items())
    return make_refused_call(hook, BODY, headers)


def test_the_page_begins_with_what_is_wrong(as_bob: Client, acme_hook: Hook) -> None:
    call = refused(acme_hook, secret="not the secret\n")

    text = words_of(as_bob.get(page_of(call)))

    assert "white space at its end" in text
    assert text.index("white space at its end") < text.index("What the caller sent")
    assert "not the secret" not in text


def test_a_call_that_matches_now_is_replayed(as_bob: Client, acme_hook: Hook) -> None:
    call = refused(acme_hook)
    set_signing_secret(acme_hook, SECRET)

    asked = as_bob.get(page_of(call, "replay"))
    assert not Run.objects.exists()
    response = as_bob.post(page_of(call, "replay"), CONFIRMED)

    assert "Replay refused call" in words_of(asked)
    assert response["Location"] == page_of(Run.objects.get())


def test_a_call_that_still_does_not_match_is_not_replayed(as_bob: Client, acme_hook: Hook) -> None:
    call = refused(acme_hook)

    response = as_bob.post(page_of(call, "replay"), CONFIRMED, follow=True)

    assert "The call still does not match." in words_of(response)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("sender", "header", "body"),
    [
        ("gitlab-token", "X-Gitlab-Token", b"{}"),
        ("microsoft-graph", "X-Other", b'{"value": [{"clientState": "shared-in-clear"}]}'),
    ],
)
def test_a_shared_secret_is_not_shown(
    as_bob: Client, acme_hook: Hook, sender: str, header: str, body: bytes
) -> None:
    set_sender(acme_hook, sender=sender)
    call = make_refused_call(acme_hook, body, (("X-Gitlab-Token", "shared-in-clear"),))

    assert "shared-in-clear" not in text_of(as_bob.get(page_of(call)))


def test_refusals_are_drawn_on_the_hooks_page(as_bob: Client, acme_hook: Hook) -> None:
    RefusalCount.objects.create(
        script=acme_hook.script,
        subject=acme_hook.pk,
        reason="SignatureMissing",
        day=timezone.now().date(),
        count=1_234,
    )

    text = words_of(as_bob.get(page_of(acme_hook)))

    assert "1234 refused in 30 days: signature missing 1234" in text
    assert "<rect" in text


@pytest.mark.parametrize(
    "narrowed", [{}, {"reason__exact": "SignatureMismatch"}, {"hook__id__exact": "{hook}"}]
)
def test_the_list_is_of_ones_own_organisation(
    as_bob: Client, charlie: User, acme_hook: Hook, narrowed: dict[str, str]
) -> None:
    call = refused(acme_hook)
    typed = {name: value.format(hook=acme_hook.pk) for name, value in narrowed.items()}

    assert page_of(call) in text_of(as_bob.get(list_of(RefusedCall), typed))
    assert page_of(call) not in text_of(logged_in(charlie).get(list_of(RefusedCall), typed))


def test_a_call_without_a_hook_is_on_its_scripts_page(
    as_bob: Client, acme_script: Script, acme_hook: Hook
) -> None:
    call = make_refused_call(acme_hook, reason="WrongToken")
    RefusedCall.objects.update(hook=None, content_ciphertext=None, detail="ending in …abcd")

    assert page_of(call) in text_of(as_bob.get(page_of(acme_script)))
    page = words_of(as_bob.get(page_of(call)))
    assert "ending in …abcd" in page
    assert as_bob.get(page_of(call, "replay")).status_code in (403, 404)


def test_another_organisations_call_is_not_found(charlie: User, acme_hook: Hook) -> None:
    call = refused(acme_hook)
    set_signing_secret(acme_hook, SECRET)
    as_charlie = logged_in(charlie)
    with nothing_written():
        assert as_charlie.get(page_of(call)).status_code == 404
        assert as_charlie.post(page_of(call, "replay"), CONFIRMED).status_code in (403, 404)
