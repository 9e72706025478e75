"""Mutations of senders, secrets, limits and refused calls, sent in every way but the right one."""

import json
from typing import Any

import pytest

from accounts.models import Organisation, User
from hooks.flows.hooks import delete_hook
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook
from scripts_engine.models import Run
from tests.admin.pages import everything
from tests.client import Client
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    bearer,
    device_login,
    graphql,
    make_device_token,
    make_hook,
    make_refused_call,
    make_script,
    open_session,
)
from tests.hooks.github import BODY, SECRET, signed
from tests.written import nothing_written

MUTATIONS = {
    "setSender": 'mutation($hook: ID!) { setSender(hook: $hook, sender: "stripe") { id } }',
    "setSigningSecret": """mutation($hook: ID!) {
        setSigningSecret(hook: $hook, value: "the next secret", overlapSeconds: 0) { id } }""",
    "deleteSigningSecret": "mutation($secret: ID!) { deleteSigningSecret(id: $secret) }",
    "expectHandshake": "mutation($asana: ID!) { expectHandshake(hook: $asana) { id } }",
    "updateHook": "mutation($hook: ID!) { updateHook(id: $hook, callsPerMinute: 1) { id } }",
    "replayRefusedCall": "mutation($call: ID!) { replayRefusedCall(id: $call) { id } }",
}
every_mutation = pytest.mark.parametrize("document", MUTATIONS.values(), ids=MUTATIONS)


@pytest.fixture
def hook(acme: Organisation) -> Hook:
    """GitHub's, with a secret."""
    hook = set_sender(make_hook(make_script(acme)).hook, sender="github")
    set_signing_secret(hook, SECRET)
    return hook


@pytest.fixture
def ids(hook: Hook) -> dict[str, str]:
    """Also of a refused call that matches now, and of a hook of Asana."""
    call = make_refused_call(hook, BODY, tuple(signed(BODY).items()))
    asana = set_sender(make_hook(hook.script).hook, sender="asana")
    secret = hook.signing_secrets.get()
    rows = {"hook": hook, "secret": secret, "asana": asana, "call": call}
    return {name: str(row.pk) for name, row in rows.items()}


def send(document: str, token: str | None, ids: dict[str, str]) -> GraphQLAnswer:
    return admin_graphql(document, token, **used(document, ids))


def used(document: str, ids: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in ids.items() if f"${name}:" in document}


@every_mutation
def test_the_mutation_of_acme_changes_something(
    acme_token: str, ids: dict[str, str], document: str
) -> None:
    before = everything()

    assert send(document, acme_token, ids).errors == []
    assert everything() != before


@every_mutation
def test_a_get_request_changes_nothing(acme_token: str, ids: dict[str, str], document: str) -> None:
    variables = json.dumps(used(document, ids))
    with nothing_written():
        response = Client().get(
            "/admin/graphql",
            {"query": document, "variables": variables},
            headers=bearer(acme_token),
        )

    assert response.status_code == 405


@every_mutation
def test_a_form_of_another_site_changes_nothing(
    acme_token: str, ids: dict[str, str], document: str
) -> None:
    variables = used(document, ids)
    browser = Client()
    browser.cookies["moonhook_session"] = acme_token
    with nothing_written():
        as_form = browser.post(
            "/admin/graphql", {"query": document, "variables": json.dumps(variables)}
        )
        as_json = browser.post(
            "/admin/graphql",
            {"query": document, "variables": variables},
            content_type="application/json",
            headers={"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        )

    assert (as_form.status_code, as_json.status_code) == (415, 403)


@every_mutation
def test_neither_strangers_nor_people_change_anything(
    alice: User, ids: dict[str, str], document: str
) -> None:
    person = open_session(device_login(make_device_token(alice)))
    with nothing_written():
        by_stranger = send(document, None, ids)
        by_person = send(document, person, ids)
        elsewhere = graphql("/user/graphql", document, person, **used(document, ids))

    assert (by_stranger.status, by_stranger.code) == (401, "UNAUTHENTICATED")
    assert (by_person.status, by_person.code) == (403, "FORBIDDEN")
    assert elsewhere.code == "GRAPHQL_VALIDATION_FAILED"


@every_mutation
def test_another_organisation_finds_nothing(
    globex_token: str, ids: dict[str, str], document: str
) -> None:
    with nothing_written():
        answer = send(document, globex_token, ids)

    assert (answer.status, answer.code, answer.data) == (200, "NOT_FOUND", None)
    assert not any(value in str(answer.errors) for value in ids.values())


@pytest.mark.parametrize(
    ("name", "code"),
    [(name, "NOT_FOUND") for name in MUTATIONS if name != "replayRefusedCall"]
    + [("replayRefusedCall", "BAD_USER_INPUT")],
)
def test_a_deleted_hook_is_not_changed(
    acme_token: str, ids: dict[str, str], name: str, code: str
) -> None:
    delete_hook(Hook.objects.get(pk=ids["hook"]))
    delete_hook(Hook.objects.get(pk=ids["asana"]))
    with nothing_written():
        answer: Any = send(MUTATIONS[name], acme_token, ids)

    assert answer.code == code
    assert not Run.objects.exists()
