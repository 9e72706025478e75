"""Methods that a hook chooses, and paths after its address."""

import json
from typing import Any

import pytest

from accounts.models import Organisation
from core.http.origin import NOWHERE
from hooks.edge.wsgi import MAX_SUBPATH_CHARACTERS
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook, update_hook
from hooks.flows.refused_calls import replay_refused_call
from hooks.models import Hook, RefusedCall
from jobs.queue.replay import replay_runs
from scripts_engine.models import Run
from scripts_engine.runs.spec import NOBODY
from scripts_engine.secrets import set_secret
from tests.client import Client
from tests.factories import (
    admin_graphql,
    basic,
    make_hook,
    make_script,
    set_rules,
    set_secret_of,
)
from tests.hooks import github
from tests.hooks.calls import path_of, secure_path_of
from tests.hooks.github import path_with_wrong_token
from tests.working_queue import work_all

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
CHOSEN = ["PUT", "PATCH", "DELETE"]
# What the script sees of the call.
SEEN = (
    'return {method = params.get("method"), path = params.get("path"), body = params.get("body")}'
)


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme, SEEN))


@pytest.fixture
def open_hook(issued: IssuedHook) -> IssuedHook:
    """Takes all methods, and paths."""
    set_rules(issued.hook, methods=METHODS, allow_path=True)
    return issued


def call(method: str, path: str, body: bytes = b"", **headers: str) -> Any:
    return Client().generic(method, path, body, content_type="text/plain", headers=headers)


@pytest.mark.parametrize("method", CHOSEN)
def test_a_chosen_method_runs_the_script(issued: IssuedHook, method: str) -> None:
    set_rules(issued.hook, methods=[method])

    by_url = call(method, path_of(issued), b"hello")
    by_basic_auth = Client().generic(
        method,
        secure_path_of(issued),
        b"hello",
        content_type="text/plain",
        headers=basic(issued.hook.pk, issued.call_token),
    )
    other = call("POST", path_of(issued))

    assert by_url.json() == by_basic_auth.json() == {"method": method, "body": "hello"}
    assert (other.status_code, other["Allow"]) == (405, f"HEAD, {method}")
    assert set(Run.objects.values_list("request_method", flat=True)) == {method}
    assert Run.objects.count() == 2


@pytest.mark.parametrize("method", CHOSEN)
def test_without_the_choice_a_right_token_is_answered_like_a_wrong_one(
    issued: IssuedHook, method: str
) -> None:
    right, wrong = (call(method, path(issued)) for path in (path_of, path_with_wrong_token))

    assert right.status_code == wrong.status_code == 405
    assert right["Allow"] == wrong["Allow"] == "GET, HEAD, POST"
    assert right.json()["code"] == wrong.json()["code"] == "method-not-allowed"
    assert Run.objects.count() == 0


@pytest.mark.parametrize("method", CHOSEN)
def test_wrong_credentials_are_answered_as_without_the_choice(
    open_hook: IssuedHook, method: str
) -> None:
    response = call(method, secure_path_of(open_hook), **basic(open_hook.hook.pk, "mhc_wrong"))

    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("/items/7", "/items/7"),
        ("/items/", "/items/"),
        ("//items", "//items"),
        ("/gr%C3%BCn%20tee", "/grün tee"),
        ("/a%2Fb", "/a/b"),
        ("/50%25", "/50%"),
    ],
)
def test_the_script_gets_the_path(open_hook: IssuedHook, given: str, seen: str) -> None:
    by_url = call("GET", path_of(open_hook) + given + "?page=2")
    by_basic_auth = call(
        "PUT",
        secure_path_of(open_hook) + given,
        **basic(open_hook.hook.pk, open_hook.call_token),
    )

    assert by_url.json()["path"] == by_basic_auth.json()["path"] == seen
    assert {run.request_path for run in Run.objects.all()} == {seen}
    assert set(Run.objects.values_list("request_query", flat=True)) == {"page=2", ""}


def test_without_a_path_the_script_gets_none(open_hook: IssuedHook) -> None:
    assert "path" not in call("GET", path_of(open_hook)).json()


@pytest.mark.parametrize(
    "given",
    [
        "/",
        "/a%00b",
        "/a%0Ab",
        "/a%1Bb",
        "/a%E2%80%AEb",
        "/../secret",
        "/a/./b",
        "/%2E%2E/secret",
        "/" + "a" * MAX_SUBPATH_CHARACTERS,
    ],
    ids=["slash", "nul", "line", "escape", "override", "up", "here", "encoded-up", "long"],
)
def test_other_paths_are_not_found(open_hook: IssuedHook, given: str) -> None:
    response = call("GET", path_of(open_hook) + given)

    assert response.status_code == 404
    assert Run.objects.count() == 0


def test_the_longest_path(open_hook: IssuedHook) -> None:
    longest = "/" + "a" * (MAX_SUBPATH_CHARACTERS - 1)

    assert call("GET", path_of(open_hook) + longest).json()["path"] == longest


def test_a_hook_that_takes_no_path_is_answered_like_a_wrong_token(issued: IssuedHook) -> None:
    right, wrong = (call("GET", f(issued) + "/items") for f in (path_of, path_with_wrong_token))
    by_basic_auth = call(
        "POST", secure_path_of(issued) + "/items", **basic(issued.hook.pk, issued.call_token)
    )

    answers = [json.loads(each.content) | {"requestId": ""} for each in (right, wrong)]
    assert answers[0] == answers[1]
    assert [right.status_code, by_basic_auth.status_code] == [404, 404]
    assert Run.objects.count() == 0


def test_paths_and_methods_tell_deliveries_apart(open_hook: IssuedHook) -> None:
    set_rules(open_hook.hook, idempotency="body-hash", methods=["POST", "PUT"])
    address = path_of(open_hook)

    first = call("POST", address + "/1", b"same")
    repeated = call("POST", address + "/1", b"same")
    others = [call("POST", address + "/2", b"same"), call("PUT", address + "/1", b"same")]

    assert repeated["Moonhook-Duplicate-Of"] == first["Moonhook-Run-Id"]
    assert all("Moonhook-Duplicate-Of" not in each for each in others)
    assert Run.objects.count() == 3


def test_a_queued_run_and_its_replay_keep_the_path(open_hook: IssuedHook) -> None:
    set_rules(open_hook.hook, reply_mode="accepted")
    assert call("PUT", path_of(open_hook) + "/items/7").status_code == 202
    [run] = work_all()
    [replayed] = replay_runs([run], author=NOBODY)
    work_all()

    for each in Run.objects.filter(pk__in=[run.pk, replayed]):
        assert (each.request_method, each.request_path) == ("PUT", "/items/7")
        assert json.loads(bytes(each.response_body))["path"] == "/items/7"


def test_a_secret_in_the_path_is_not_recorded(acme: Organisation) -> None:
    set_secret(organisation=acme, name="SHOP", value="sh0p-geheim")
    script = make_script(acme, 'return params.get("path") == "/" .. secrets.get("SHOP")')
    issued = make_hook(script)
    set_rules(issued.hook, allow_path=True)

    assert call("GET", path_of(issued) + "/sh0p-geheim").content == b"true"
    assert Run.objects.get().request_path == "/[redacted]"


def test_a_refused_call_is_replayed_with_its_path(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, SEEN))
    set_rules(issued.hook, sender="github", allow_path=True)
    set_secret_of(issued.hook, "another")
    refused = call("POST", path_of(issued) + "/items/7", github.BODY, **github.signed())
    call_notes.write()
    set_secret_of(issued.hook, github.SECRET)

    run = replay_refused_call(RefusedCall.objects.get(), origin=NOWHERE)

    assert refused.status_code == 401
    assert run.request_path == "/items/7"


def test_graphql_sets_and_shows_both(acme: Organisation, acme_token: str) -> None:
    issued = make_hook(make_script(acme, SEEN))
    changed = admin_graphql(
        'mutation($id: ID!) { updateHook(id: $id, methods: ["DELETE", "GET"], allowPath: true)'
        " { methods allowPath } }",
        acme_token,
        id=str(issued.hook.pk),
    )
    call("DELETE", path_of(issued) + "/items/7")
    runs = admin_graphql("{ runs(first: 1) { nodes { requestMethod requestPath } } }", acme_token)

    assert changed.data == {"updateHook": {"methods": ["GET", "DELETE"], "allowPath": True}}
    assert runs.data == {
        "runs": {"nodes": [{"requestMethod": "DELETE", "requestPath": "/items/7"}]}
    }


def test_body_hash_needs_bodies_that_differ(issued: IssuedHook) -> None:
    update_hook(issued.hook, methods=["PUT", "DELETE"], idempotency="body-hash")

    assert Hook.objects.get().idempotency == "body-hash"
