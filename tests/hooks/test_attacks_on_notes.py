"""What refused calls must not reveal, and what strangers must not crowd out."""

import uuid

import pytest
from django.core.exceptions import ValidationError

from accounts.models import Organisation
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import RefusedCall
from hooks.models.refused_call import content_of
from hooks.senders import InvalidSecretError, check_secret
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import make_hook, make_script
from tests.hooks.calls import path_of
from tests.hooks.github import call, refusals

SHARED = "a secret in clear"


@pytest.mark.parametrize("name", ["Cookie", "authorization", "Proxy-Authorization"])
@pytest.mark.parametrize("option", ["header", "idHeader", "timestampHeader"])
def test_a_sender_cannot_be_proved_by_a_credential(
    github: IssuedHook, option: str, name: str
) -> None:
    options = {"header": "X-Signature", "template": "{timestamp}.{id}.{body}", option: name}

    with pytest.raises(ValidationError) as refusal:
        set_sender(github.hook, sender="hmac", hmac=options)

    assert len(refusal.value.message_dict) == 1
    github.hook.refresh_from_db()
    assert github.hook.sender == "github"


@pytest.mark.parametrize("template", ["{id}{body}", "{timestamp}.{body}{id}"])
def test_an_id_stands_apart_in_what_is_signed(github: IssuedHook, template: str) -> None:
    options = {"header": "X-Signature", "template": template, "idHeader": "X-Id"}

    with pytest.raises(ValidationError) as refusal:
        set_sender(github.hook, sender="hmac", hmac=options)

    assert list(refusal.value.message_dict) == ["template"]


def test_cookies_and_our_secrets_are_not_kept(github: IssuedHook) -> None:
    headers = {
        "Cookie": "moonhook_session=mhx_visitor",
        "X-GitHub-Event": "mhx_a1b2c3",
        "X-GitHub-Delivery": "kept",
    }

    assert call(github, headers=headers).status_code == 401
    call_notes.write()

    content = content_of(RefusedCall.objects.get())
    assert content is not None
    values = dict(content.headers)
    assert values["X-Github-Delivery"] == "kept"
    assert "Cookie" not in values
    assert values["X-Github-Event"] == ""


def test_a_flood_of_made_up_addresses_hides_no_refused_call(github: IssuedHook) -> None:
    client = Client()
    for _ in range(250):
        client.post(f"/hook/{uuid.uuid4()}/{uuid.uuid4()}/x", b"", content_type="text/plain")

    assert call(github, headers={}).status_code == 401

    assert [reason for reason, _ in refusals()] == ["SignatureMissing"]


def test_a_secret_in_the_payload_is_not_recorded(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, "return params.json().value[1].clientState == nil"))
    set_sender(issued.hook, sender="microsoft-graph")
    set_signing_secret(issued.hook, SHARED)
    body = b'{"value": [{"clientState": "a secret in clear", "id": 7}]}'

    response = Client().post(path_of(issued), body, content_type="application/json")

    assert response.status_code == 200
    recorded = bytes(Run.objects.get().request_body)
    assert SHARED.encode() not in recorded
    assert b'"id": 7' in recorded


@pytest.mark.parametrize(
    "key",
    [
        "00" * 32,
        "01" + "00" * 31,
        "01" + "00" * 30 + "80",
        "ec" + "ff" * 30 + "7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ff" * 32,
    ],
)
def test_keys_that_verify_anything_are_refused(key: str) -> None:
    with pytest.raises(InvalidSecretError):
        check_secret("discord", None, key)
