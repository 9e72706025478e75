"""What is noted of calls: refusals, and which credentials are in use."""

import io
from typing import Any

import pytest

from accounts.models import Organisation
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook, rotate_call_token
from hooks.models import CredentialUse, Hook, RefusedCall
from scripts_engine.models import Run
from scripts_engine.sandbox import SandboxBusy
from tests.client import Client
from tests.factories import make_hook, make_script, set_secret_of
from tests.hooks.calls import path_of
from tests.hooks.github import BODY, call, refusals, signed


def uses() -> dict[str, int]:
    call_notes.write()
    return dict(CredentialUse.objects.values_list("credential", "count"))


def test_the_use_of_each_secret_is_counted(github: IssuedHook) -> None:
    old = Hook.objects.get(pk=github.hook.pk).signing_secret_id
    call(github, REMOTE_ADDR="192.0.2.7")
    set_secret_of(github.hook, "new", overlap_seconds=60)
    new = Hook.objects.get(pk=github.hook.pk).signing_secret_id
    call(github)
    call(github, headers=signed(secret="new"))
    call(github, headers={})

    assert uses() == {str(old): 2, str(new): 1}


def test_the_use_of_call_tokens_is_counted_while_two_are_valid(acme: Organisation) -> None:
    echo = make_hook(make_script(acme))
    call(echo)
    assert uses() == {}

    rotated = rotate_call_token(echo.hook, overlap_seconds=60)
    call(echo)
    call(rotated)
    call(rotated)
    assert uses() == {rotated.hook.previous_digest: 1, rotated.hook.digest: 2}


def test_the_use_of_a_call_token_moves_with_it_to_a_new_pepper(
    acme: Organisation, settings: Any
) -> None:
    echo = make_hook(make_script(acme))
    rotated = rotate_call_token(echo.hook, overlap_seconds=60)
    call(echo)
    call(rotated)
    before = uses()
    settings.PEPPERS = {99: b"9" * 32, **settings.PEPPERS}
    call(echo)
    call(rotated)
    call(rotated)

    hook = Hook.objects.get()
    assert hook.digest != rotated.hook.digest
    assert before == {hook.previous_digest: 1, rotated.hook.digest: 1}
    assert uses() == {hook.previous_digest: 2, hook.digest: 3}


def test_the_refusal_is_noted_after_the_answer(github: IssuedHook) -> None:
    call(github, headers={}, REMOTE_ADDR="192.0.2.1")

    assert not RefusedCall.objects.exists()
    assert refusals() == [("SignatureMissing", RefusedCall.objects.get().detail)]
    kept = RefusedCall.objects.get()
    assert (kept.hook, kept.client_address, kept.method) == (github.hook, "192.0.2.1", "POST")
    assert not Run.objects.exists()


def test_a_busy_sandbox_is_noted_for_every_hook(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = make_hook(make_script(acme))

    def busy(*arguments: object) -> None:
        raise SandboxBusy(2)

    monkeypatch.setattr("hooks.flows.run_call.run_script", busy)
    response = call(echo)

    assert (response.status_code, response["Retry-After"]) == (503, "2")
    assert refusals() == [("Busy", "")]


def test_a_wrong_token_is_noted_without_reading_the_body(github: IssuedHook) -> None:
    unread = io.BytesIO(BODY)
    token = github.call_token[:-4]
    path = path_of(github)[:-4]
    response = Client().post(path, BODY, "text/plain", **{"wsgi.input": unread})

    assert response.status_code == 404
    assert unread.tell() == 0
    assert refusals() == [("WrongToken", f"ending in …{token[-4:]}, cut or mistyped")]
    assert RefusedCall.objects.get().hook is None
