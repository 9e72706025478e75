"""What browsers may call a hook for: a page, never a part of one."""

from typing import Any

import pytest

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook
from hooks.models import RefusalCount
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import basic, make_hook, make_script
from tests.hooks.calls import path_of

PARTS_OF_PAGES = [
    "audio", "audioworklet", "embed", "fencedframe", "font", "frame", "iframe", "image", "json",
    "manifest", "object", "paintworklet", "script", "serviceworker", "sharedworker", "style",
    "text", "track", "video", "webidentity", "worker", "xslt",
]  # fmt: skip
MALFORMED = ["", "Document", " empty", "empty, script", "empty;a=1", '"empty"', "é"]


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme))


def call(method: str, path: str, destination: str, **more: Any) -> Any:
    headers = {"Sec-Fetch-Dest": destination, **more}
    return Client().generic(method, path, b"x" * (method == "POST"), headers=headers)


@pytest.mark.parametrize("destination", [*PARTS_OF_PAGES, *MALFORMED])
def test_a_call_for_a_part_of_a_page_is_refused(issued: IssuedHook, destination: str) -> None:
    response = call("GET", path_of(issued), destination)

    assert (response.status_code, response.json()["code"]) == (403, "cross-origin")
    assert response["Content-Security-Policy"] == "sandbox"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert not Run.objects.exists()


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "PUT"])
def test_every_method_is_refused_alike(issued: IssuedHook, method: str) -> None:
    asked = {"WebHook-Request-Origin": "events.example"}

    assert call(method, path_of(issued), "script", **asked).status_code == 403
    assert not Run.objects.exists()


def test_the_refusal_does_not_tell_whether_the_token_is_right(issued: IssuedHook) -> None:
    path = path_of(issued)
    paths = (path, path[:-1], "/hook/", "/hook/a/b/c", "/hook/secure/a/b")

    answers = [call("GET", each, "script").json() for each in paths]

    assert {(each["status"], each["code"], each["detail"]) for each in answers} == {
        (403, "cross-origin", answers[0]["detail"])
    }
    assert not RefusalCount.objects.exists()


def test_a_secure_call_for_a_part_of_a_page_is_refused(issued: IssuedHook) -> None:
    hook = issued.hook
    path = f"/hook/secure/{hook.script.organisation_id}/{hook.script_id}"
    login = basic(hook.pk, issued.call_token)

    refused = call("POST", path, "worker", **login)

    assert refused.status_code == 403
    assert not Run.objects.exists()
    assert call("POST", path, "empty", **login).status_code == 200


@pytest.mark.parametrize("destination", ["empty", "document", "report"])
def test_a_call_for_data_or_for_a_page_runs_the_script(
    issued: IssuedHook, destination: str
) -> None:
    assert call("POST", path_of(issued), destination).status_code == 200
    assert Run.objects.count() == 1


@pytest.mark.parametrize("prefix", ["/static/..%2F", "/static/%2e%2e/", "/static//../"])
def test_a_path_below_that_of_static_files_reaches_no_hook(issued: IssuedHook, prefix: str) -> None:
    response = Client().get(prefix + path_of(issued)[1:])

    assert response.status_code == 404
    assert not Run.objects.exists()
