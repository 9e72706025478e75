"""POST /hook/secure/<org>/<script>."""

import base64
import uuid
from typing import Any

import pytest

from accounts import credentials
from accounts.credentials import SecretKind
from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook, rotate_call_token, update_hook
from hooks.models import Hook
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import basic, make_hook, make_script
from tests.hooks.calls import secure_path_of


@pytest.fixture
def echo(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme))


def call(path: str, headers: dict[str, str], body: bytes = b"hello") -> Any:
    return Client().post(path, body, content_type="text/plain", headers=headers)


def good_headers(issued: IssuedHook) -> dict[str, str]:
    return basic(issued.hook.pk, issued.call_token)


def assert_refused(response: Any) -> None:
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Basic realm="hooks", charset="UTF-8"'
    assert response["Content-Security-Policy"] == "sandbox"
    problem = response.json()
    problem.pop("requestId")
    assert problem == {
        "type": "urn:moonhook:problem:invalid-credentials",
        "title": "Invalid credentials",
        "status": 401,
        "detail": "The credentials are not valid.",
        "code": "invalid-credentials",
    }
    assert Run.objects.count() == 0


def test_hook_id_and_call_token_run_the_script(echo: IssuedHook) -> None:
    response = call(secure_path_of(echo), good_headers(echo))

    assert (response.status_code, response.content) == (200, b"hello")
    assert Run.objects.get().hook_id == echo.hook.pk


def test_the_script_does_not_see_the_credentials(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, 'return params.header("authorization") == nil'))

    assert call(secure_path_of(issued), good_headers(issued)).content == b"true"
    assert "Authorization" not in str(Run.objects.get().request_headers)


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
        "Bearer mhx_x",
    ],
)
def test_malformed_credentials_are_refused(echo: IssuedHook, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}

    assert_refused(call(secure_path_of(echo), headers))
    assert call(secure_path_of(echo), good_headers(echo)).status_code == 200


def test_a_wrong_token_or_hook_id_is_refused(echo: IssuedHook) -> None:
    wrong = credentials.generate_secret(SecretKind.CALL_TOKEN)

    assert_refused(call(secure_path_of(echo), basic(echo.hook.pk, wrong)))
    assert_refused(call(secure_path_of(echo), basic(uuid.uuid4(), echo.call_token)))
    assert_refused(call(secure_path_of(echo), basic("x", echo.call_token)))


def test_another_hooks_token_is_refused(echo: IssuedHook) -> None:
    other = make_hook(echo.hook.script)

    assert_refused(call(secure_path_of(echo), basic(echo.hook.pk, other.call_token)))


def test_another_address_is_refused(
    acme: Organisation, globex: Organisation, echo: IssuedHook
) -> None:
    headers, script = good_headers(echo), echo.hook.script_id

    assert_refused(call(f"/hook/secure/{globex.pk}/{script}", headers))
    assert_refused(call(f"/hook/secure/{acme.pk}/{uuid.uuid4()}", headers))
    assert_refused(call(f"/hook/secure/x/{script}", headers))


def test_a_disabled_hook_is_refused(echo: IssuedHook) -> None:
    update_hook(echo.hook, is_enabled=False)

    assert_refused(call(secure_path_of(echo), good_headers(echo)))


def test_a_rotated_token_is_refused(echo: IssuedHook) -> None:
    rotated = rotate_call_token(Hook.objects.get())

    assert_refused(call(secure_path_of(echo), good_headers(echo)))
    assert call(secure_path_of(echo), good_headers(rotated)).status_code == 200


def test_an_unknown_and_a_known_hook_cost_the_same_queries(
    echo: IssuedHook, django_assert_num_queries: Any
) -> None:
    wrong = credentials.generate_secret(SecretKind.CALL_TOKEN)

    with django_assert_num_queries(2):
        call(secure_path_of(echo), basic(echo.hook.pk, wrong))
    with django_assert_num_queries(2):
        call(secure_path_of(echo), basic(uuid.uuid4(), wrong))


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_only_post_is_allowed(echo: IssuedHook, method: str) -> None:
    response = getattr(Client(), method)(secure_path_of(echo), headers=good_headers(echo))

    assert response.status_code == 405
    assert response["Allow"] == "POST"
    assert Run.objects.count() == 0
