"""Deliveries recognised by their content: method, path, query and body, or a Twilio form."""

import base64
import hashlib
import hmac
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook, update_hook
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import basic, make_hook, make_script, set_rules, set_secret_of
from tests.hooks.calls import path_of, secure_path_of

SECRET = "a secret of the sender"
ORIGIN = "https://hooks.example"
FORM = "application/x-www-form-urlencoded"

pytestmark = pytest.mark.django_db


def make_hook_of(sender: str, organisation: Organisation, **rules: Any) -> IssuedHook:
    issued = make_hook(make_script(organisation, 'return store.increment("n")'))
    set_rules(issued.hook, sender=sender, idempotency="body-hash", methods=["POST"], **rules)
    set_secret_of(issued.hook, SECRET)
    return issued


def signature(content: str, algorithm: str) -> str:
    digest = hmac.new(SECRET.encode(), content.encode(), algorithm).digest()
    return base64.b64encode(digest).decode()


def post(issued: IssuedHook, body: str, content_type: str, query: str, **headers: str) -> Any:
    with override_settings(PUBLIC_URL=ORIGIN):
        return Client().post(
            path_of(issued) + query, body.encode(), content_type=content_type, headers=headers
        )


@pytest.fixture
def twilio(acme: Organisation) -> IssuedHook:
    return make_hook_of("twilio", acme)


def post_form(issued: IssuedHook, form: str, signed: str, query: str = "?from=sms") -> Any:
    """``signed`` is the sorted names and values, without anything between them."""
    url = f"{ORIGIN}{path_of(issued)}?from=sms"
    headers = {"X-Twilio-Signature": signature(url + signed, "sha1")}
    return post(issued, form, FORM, query, **headers)


@pytest.mark.parametrize(
    ("form", "query"),
    [
        ("Body=a+b&Sid=1", "?from=sms"),
        ("Sid=1&Body=a+b", "?from=sms"),
        ("Body=a%20b&Sid=%31", "?from=sms"),
        ("&Body=a+b&&Sid=1&Sid=1&", "?from=sms"),
        ("Bod=ya+b&Sid=1", "?from=sms"),
        ("=a+b&Sid=1", "?from=smsBody"),
    ],
)
def test_a_form_in_another_encoding_is_a_duplicate(
    twilio: IssuedHook, form: str, query: str
) -> None:
    # Signatures of forms hold for every one of these.
    first = post_form(twilio, "Body=a+b&Sid=1", "Bodya bSid1")
    again = post_form(twilio, form, "Bodya bSid1", query)

    assert (first.status_code, first.content) == (200, b"1")
    assert (again.status_code, again.content) == (200, b"1")
    assert again["Moonhook-Duplicate-Of"] == first["Moonhook-Run-Id"]
    assert Run.objects.count() == 1


def test_another_form_runs(twilio: IssuedHook) -> None:
    first = post_form(twilio, "Body=a+b&Sid=1", "Bodya bSid1")
    other = post_form(twilio, "Body=a+b&Sid=2", "Bodya bSid2")

    assert (first.content, other.content) == (b"1", b"2")


def post_signed(issued: IssuedHook, material: str, body: str, query: str, at: str) -> Any:
    mac = hmac.new(SECRET.encode(), material.encode(), hashlib.sha256)
    headers = {"X-Signature": mac.hexdigest(), "X-Time": at}
    return post(issued, body, "text/plain", query, **headers)


def test_another_time_makes_no_new_delivery(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooks.acceptance.time", SimpleNamespace(time=lambda: 1_700_000_100))
    template = "{timestamp}.{url}.{body}"
    options = {"header": "X-Signature", "template": template, "timestampHeader": "X-Time"}
    issued = make_hook_of("hmac", acme, hmac=options)
    materials = {at: f"{at}.{ORIGIN}{path_of(issued)}.order" for at in ("1700000000", "1700000060")}
    replies = [post_signed(issued, signed, "order", "", at) for at, signed in materials.items()]

    assert [each.content for each in replies] == [b"1", b"1"]
    assert Run.objects.count() == 1


# --- Without a sender ----------------------------------------------------------------------------


@pytest.fixture
def open_hook(acme: Organisation) -> IssuedHook:
    issued = make_hook(make_script(acme, 'return store.increment("n")'))
    update_hook(issued.hook, methods=["POST"], idempotency="body-hash")
    return issued


def test_another_query_runs(open_hook: IssuedHook) -> None:
    queries = ("?shop=1", "?shop=2", "?shop=1", "?shop=1&", "")
    replies = [post(open_hook, "order", "text/plain", query) for query in queries]

    assert [each.content for each in replies] == [b"1", b"2", b"1", b"3", b"4"]
    assert replies[2]["Moonhook-Duplicate-Of"] == replies[0]["Moonhook-Run-Id"]
    assert Run.objects.count() == 4


def test_bytes_of_the_query_are_not_those_of_the_body(open_hook: IssuedHook) -> None:
    calls = [("?shop=1", "order"), ("?shop=1o", "rder"), ("", "?shop=1order")]
    replies = [post(open_hook, body, "text/plain", query) for query, body in calls]

    assert [each.content for each in replies] == [b"1", b"2", b"3"]


def test_another_address_of_the_hook_runs(open_hook: IssuedHook) -> None:
    credentials = basic(open_hook.hook.pk, open_hook.call_token)
    by_url = post(open_hook, "order", "text/plain", "")
    by_basic_auth = Client().post(
        secure_path_of(open_hook), b"order", content_type="text/plain", headers=credentials
    )

    assert (by_url.content, by_basic_auth.content) == (b"1", b"2")


def test_another_method_of_a_sender_runs(acme: Organisation) -> None:
    issued = make_hook_of("github", acme)
    update_hook(issued.hook, methods=["GET", "POST"])
    headers = {
        "X-Hub-Signature-256": f"sha256={hmac.new(SECRET.encode(), b'', 'sha256').hexdigest()}"
    }
    posted = post(issued, "", "text/plain", "", **headers)
    got = Client().get(path_of(issued), headers=headers)
    again = Client().get(path_of(issued), headers=headers)

    assert (posted.content, got.content, again.content) == (b"1", b"2", b"2")
    assert again["Moonhook-Duplicate-Of"] == got["Moonhook-Run-Id"]
