"""Deliveries recognised by their content, of senders that sign more than the bytes of the body."""

import base64
import hashlib
import hmac
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings

from accounts.models import Organisation
from scripts_engine.flows.hooks import IssuedHook
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import make_hook, make_script, set_rules, set_secret_of
from tests.hooks.github import path_of

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


def test_bytes_moved_from_the_body_to_the_query_make_no_new_delivery(acme: Organisation) -> None:
    options = {"header": "X-Signature", "template": "{url}{body}"}
    issued = make_hook_of("hmac", acme, hmac=options)
    material = f"{ORIGIN}{path_of(issued)}?shop=1order 1"
    first = post_signed(issued, material, "order 1", "?shop=1", "")
    again = post_signed(issued, material, "rder 1", "?shop=1o", "")

    assert (first.status_code, first.content) == (200, b"1")
    assert (again.status_code, again.content) == (200, b"1")
    assert again["Moonhook-Duplicate-Of"] == first["Moonhook-Run-Id"]


def test_another_time_makes_no_new_delivery(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooks.sender.time", SimpleNamespace(time=lambda: 1_700_000_100))
    template = "{timestamp}.{url}.{body}"
    options = {"header": "X-Signature", "template": template, "timestampHeader": "X-Time"}
    issued = make_hook_of("hmac", acme, hmac=options)
    materials = {at: f"{at}.{ORIGIN}{path_of(issued)}.order" for at in ("1700000000", "1700000060")}
    replies = [post_signed(issued, signed, "order", "", at) for at, signed in materials.items()]

    assert [each.content for each in replies] == [b"1", b"1"]
    assert Run.objects.count() == 1
