"""What changes a hook's sender, secrets and limits, or replays a call, is a form sent by hand."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from accounts.models import Organisation, User
from hooks.flows.hooks import delete_hook
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook, RefusedCall, SigningSecret
from scripts_engine.models import Run
from tests.admin.pages import CONFIRMED, everything, logged_in, page_of, text_of
from tests.client import Client
from tests.factories import make_hook, make_refused_call, make_script
from tests.hooks.github import BODY, SECRET, signed
from tests.written import nothing_written

LIMITS = {
    "methods": ["POST"],
    "max_body_bytes": "4096",
    "idempotency": "none",
    "calls_per_minute": "1",
}
SENDER = {"sender": "stripe", "value": "the next secret"}
NEXT_SECRET = {"value": "the next secret", "overlap_seconds": "0"}


class Target:
    """GitHub's hook, with a secret and a call that matches it now; and a hook of Asana."""

    def __init__(self, organisation: Organisation) -> None:
        script = make_script(organisation)
        self.hook = set_sender(make_hook(script).hook, sender="github")
        self.secret = set_signing_secret(self.hook, SECRET)
        self.call = make_refused_call(self.hook, BODY, tuple(signed(BODY).items()))
        self.asana = set_sender(make_hook(script).hook, sender="asana")


def end_of(hook: Hook, secret: SigningSecret) -> str:
    return reverse("admin:hooks_hook_end_secret", args=[hook.pk, secret.pk])


UUID_IN_PATH = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Place = Callable[[Target], str]
CHANGES: list[Any] = [
    pytest.param(lambda each: page_of(each.hook, "sender"), SENDER, id="sender"),
    pytest.param(lambda each: page_of(each.hook, "sender"), {"sender": ""}, id="no-sender"),
    pytest.param(lambda each: page_of(each.hook, "secret"), NEXT_SECRET, id="secret"),
    pytest.param(lambda each: page_of(each.hook, "limits"), LIMITS, id="limits"),
    pytest.param(lambda each: page_of(each.asana, "expect"), CONFIRMED, id="expect"),
    pytest.param(lambda each: end_of(each.hook, each.secret), CONFIRMED, id="end-secret"),
    pytest.param(lambda each: page_of(each.call, "replay"), CONFIRMED, id="replay"),
]
changes = pytest.mark.parametrize(("place", "form"), CHANGES)


@pytest.fixture
def target(acme: Organisation) -> Target:
    return Target(acme)


@changes
def test_the_form_of_bob_changes_something(
    as_bob: Client, target: Target, place: Place, form: dict[str, Any]
) -> None:
    before = everything()

    assert as_bob.post(place(target), form).status_code == 302
    assert everything() != before


@changes
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_no_other_method_changes_anything(
    as_bob: Client, target: Target, place: Place, form: dict[str, Any], method: str
) -> None:
    with nothing_written():
        as_bob.get(place(target), form)
        response = as_bob.generic(method, place(target), b"post=yes", "text/plain")

    assert response.status_code in (200, 405)


@changes
def test_a_form_without_the_csrf_token_is_refused(
    bob: User, target: Target, place: Place, form: dict[str, Any]
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)
    with nothing_written():
        response = client.post(place(target), form, headers={"Origin": "https://evil.example"})

    assert response.status_code == 403
    assert SECRET not in text_of(response)


@changes
def test_the_form_of_another_organisation_finds_nothing(
    charlie: User, target: Target, place: Place, form: dict[str, Any]
) -> None:
    client = logged_in(charlie)
    with nothing_written():
        response = client.post(place(target), form)
        of_nothing = client.post(UUID_IN_PATH.sub(str(uuid.uuid4()), place(target)), form)

    assert (response.status_code, of_nothing.status_code) in {(404, 404), (403, 403)}
    assert str(target.hook.pk) not in text_of(response)


@pytest.mark.parametrize(("place", "form"), [each for each in CHANGES if each.id != "replay"])
def test_a_deleted_hook_cannot_be_changed(
    as_bob: Client, target: Target, place: Place, form: dict[str, Any]
) -> None:
    delete_hook(target.hook)
    delete_hook(target.asana)
    with nothing_written():
        assert as_bob.post(place(target), form).status_code == 404


def test_a_call_of_a_deleted_hook_is_not_replayed(as_bob: Client, target: Target) -> None:
    delete_hook(target.hook)
    with nothing_written():
        response = as_bob.post(page_of(target.call, "replay"), CONFIRMED, follow=True)

    assert "The hook cannot be called." in text_of(response)


def test_a_secret_of_acme_is_not_ended_through_a_hook_of_globex(
    charlie: User, target: Target, globex: Organisation
) -> None:
    own, client = Target(globex), logged_in(charlie)
    with nothing_written():
        assert client.post(end_of(own.hook, target.secret), CONFIRMED).status_code == 404
        assert client.post(end_of(target.hook, own.secret), CONFIRMED).status_code == 404
    assert client.post(end_of(own.hook, own.secret), CONFIRMED).status_code == 302


def test_a_refused_call_is_neither_changed_nor_deleted_by_hand(
    as_bob: Client, target: Target
) -> None:
    form = {"reason": "Busy", "client_address": "192.0.2.1", **CONFIRMED}
    with nothing_written():
        responses = [as_bob.post(page_of(target.call, page), form) for page in ("change", "delete")]

    assert [response.status_code for response in responses] == [403, 403]
    assert (RefusedCall.objects.count(), Run.objects.count()) == (1, 0)
