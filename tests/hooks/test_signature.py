"""Calls of hooks that know their sender: what is verified, and what a refusal says."""

import hashlib
import hmac
import io
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook
from hooks.flows.senders import set_sender
from hooks.models import Hook, SigningSecret
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run
from scripts_engine.runs.spec import NOBODY
from tests.client import Client
from tests.factories import ECHO, basic, make_hook, make_script, set_rules, set_secret_of
from tests.hooks.calls import path_of, secure_path_of
from tests.hooks.github import BODY, SECRET, SOURCE, assert_refused, call, refusals, signed


def test_a_signed_call_runs_the_script(github: IssuedHook) -> None:
    response = call(github)

    assert response.status_code == 200
    assert response.json() == ["github", "signed", None, BODY.decode(), True, None]
    run = Run.objects.get()
    assert (run.sender, run.verified, run.event_id) == ("github", "signed", None)
    assert (run.hook_id, bytes(run.request_body)) == (github.hook.pk, BODY)
    assert refusals() == []


def test_it_takes_one_select_and_one_insert(
    transactional_db: None, github: IssuedHook, django_assert_num_queries: Any
) -> None:
    # The source is read by the first call of a version.
    call(github)
    with django_assert_num_queries(2) as captured:
        call(github)

    statements = [query["sql"].split()[0] for query in captured.captured_queries]
    assert statements == ["SELECT", "INSERT"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "SignatureMissing"),
        ({"X-Hub-Signature-256": ""}, "SignatureMalformed"),
        ({"X-Hub-Signature-256": "sha256=" + "0" * 63}, "SignatureMismatch"),
        ({"X-Hub-Signature-256": "sha256=" + "g" * 64}, "SignatureMalformed"),
        ({"X-Hub-Signature-256": "sha256=" + "é" * 64}, "SignatureMalformed"),
        (signed(secret="another"), "SignatureMismatch"),
        (signed(body=BODY + b"\n"), "SignatureMismatch"),
        # Two headers, as the server joins them.
        (
            {"X-Hub-Signature-256": ",".join(signed()["X-Hub-Signature-256"] for _ in "12")},
            "SignatureMalformed",
        ),
    ],
)
def test_every_other_signature_is_refused_with_one_answer(
    github: IssuedHook, headers: dict[str, str], reason: str
) -> None:
    assert_refused(call(github, headers=headers))
    assert refusals()[0][0] == reason
    assert call(github).status_code == 200


def test_a_hook_without_a_secret_refuses_every_call(github: IssuedHook) -> None:
    assert call(github).status_code == 200
    Run.objects.all().delete()
    Hook.objects.update(signing_secret=None)

    assert_refused(call(github))
    assert_refused(call(github, headers=signed(secret="")))
    assert [reason for reason, _ in refusals()] == ["NoSecretSet", "NoSecretSet"]


def test_a_secret_that_cannot_be_decrypted_counts_as_none(
    github: IssuedHook, caplog: pytest.LogCaptureFixture
) -> None:
    other = make_hook(github.hook.script)
    set_rules(other.hook, sender="github")
    set_secret_of(other.hook, SECRET)
    moved = Hook.objects.get(pk=other.hook.pk).signing_secret
    Hook.objects.filter(pk=github.hook.pk).update(signing_secret=moved)

    assert call(other).status_code == 200
    Run.objects.all().delete()
    assert_refused(call(github))
    assert SECRET not in caplog.text


def test_both_live_secrets_are_good_until_the_older_ends(github: IssuedHook) -> None:
    set_secret_of(github.hook, "the new one", overlap_seconds=60)

    assert call(github, headers=signed(secret="the new one")).status_code == 200
    assert call(github).status_code == 200
    Run.objects.all().delete()
    SigningSecret.objects.exclude(ends_at=None).update(ends_at=timezone.now())
    assert_refused(call(github))


def test_a_third_secret_ends_the_oldest(github: IssuedHook) -> None:
    set_secret_of(github.hook, "the new one", overlap_seconds=60)
    assert call(github).status_code == 200
    Run.objects.all().delete()
    set_secret_of(github.hook, "the newest", overlap_seconds=60)

    assert_refused(call(github))
    assert call(github, headers=signed(secret="the new one")).status_code == 200


def test_the_secure_address_is_verified_too(github: IssuedHook) -> None:
    credentials = basic(github.hook.pk, github.call_token)

    def call_secure(headers: dict[str, str]) -> Any:
        return Client().post(
            secure_path_of(github), BODY, content_type="application/json", headers=headers
        )

    assert_refused(call_secure(credentials))
    assert call_secure(credentials | signed()).status_code == 200


def test_a_compressed_body_is_verified_as_it_was_sent(github: IssuedHook) -> None:
    update_script(github.hook.script, source=ECHO, author=NOBODY)
    body = b"\x1f\x8b\x08 not really gzip"
    headers = signed(body) | {"Content-Encoding": "gzip"}

    assert call(github, body, headers).status_code == 200
    assert bytes(Run.objects.get().request_body) == body


def test_a_chunked_body_is_verified(github: IssuedHook) -> None:
    def call_chunked(body: bytes) -> Any:
        chunked = {"wsgi.input": io.BytesIO(body), "wsgi.input_terminated": True}
        return Client().generic(
            "POST", path_of(github), b"", headers=signed(), CONTENT_LENGTH="", **chunked
        )

    assert_refused(call_chunked(BODY[:-1]))
    assert call_chunked(BODY).status_code == 200


def test_a_shared_secret_is_neither_shown_nor_recorded(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, SOURCE))
    set_rules(issued.hook, sender="gitlab-token")
    set_secret_of(issued.hook, "glft-geheim")

    assert_refused(call(issued, headers={"X-Gitlab-Token": "glft-geheim!"}))
    response = call(issued, headers={"X-Gitlab-Token": "glft-geheim", "X-Gitlab-Event": "Push"})

    assert response.json()[:2] == ["gitlab-token", "shared-secret"]
    assert response.json()[-1] is None
    run = Run.objects.get()
    assert ["X-Gitlab-Event", "Push"] in run.request_headers
    assert "geheim" not in str(run.request_headers)


def test_one_signature_of_an_id_and_a_body_holds_for_one_call(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, SOURCE))
    options = {"header": "X-Signature", "template": "{id}.{body}", "idHeader": "X-Id"}
    set_sender(issued.hook, sender="hmac", hmac=options)
    set_secret_of(issued.hook, SECRET)
    signature = hmac.new(SECRET.encode(), b"e1.a.b.c.d", hashlib.sha256).hexdigest()

    def call_as(event_id: str, body: bytes) -> Any:
        return call(issued, body, headers={"X-Signature": signature, "X-Id": event_id})

    moved = [("e1.a", b"b.c.d"), ("e1.a.b", b"c.d"), ("e1.a.b.c", b"d")]
    for event_id, body in moved:
        assert_refused(call_as(event_id, body))
    assert {reason for reason, _ in refusals()} == {"SignatureMalformed"}
    assert call_as("e1", b"a.b.c.d").status_code == 200
    assert Run.objects.get().event_id == "e1"
