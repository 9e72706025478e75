"""What a call of a hook must pass before its signature is looked at."""

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook, update_hook
from hooks.models import Hook
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import basic, make_hook, make_script, set_rules, set_secret_of
from tests.hooks.calls import path_of, secure_path_of
from tests.hooks.github import (
    BODY,
    SECRET,
    call,
    forget_taken_notes,
    path_with_wrong_token,
    refusals,
    signed,
)


def test_a_wrong_token_tells_nothing_of_the_sender(github: IssuedHook) -> None:
    response = Client().post(path_with_wrong_token(github), BODY, "text/plain", headers=signed())

    assert response.status_code == 404
    assert "WWW-Authenticate" not in response
    assert Run.objects.count() == 0


def test_a_disabled_hook_is_not_found_before_anything_else(github: IssuedHook) -> None:
    update_hook(github.hook, is_enabled=False)

    assert call(github).status_code == 404
    assert call(github, headers={}).status_code == 404


@pytest.mark.parametrize("networks", [["192.0.2.0/24"], ["2001:db8::/32", "198.51.100.7/32"]])
def test_another_network_is_answered_like_a_wrong_token(
    github: IssuedHook, networks: list[str]
) -> None:
    address = {"REMOTE_ADDR": networks[-1].partition("/")[0]}
    set_rules(github.hook, allowed_networks=networks)
    wrong = Client().post(path_with_wrong_token(github), BODY, "text/plain")
    secure = basic(github.hook.pk, github.call_token) | signed()

    assert call(github, **address).status_code == 200
    Run.objects.all().delete()
    for_url = call(github, REMOTE_ADDR="203.0.113.1")
    for_basic = Client().post(
        secure_path_of(github), BODY, headers=secure, content_type="a/b", REMOTE_ADDR="203.0.113.1"
    )
    head = Client().head(path_of(github), REMOTE_ADDR="203.0.113.1")

    assert for_url.status_code == head.status_code == 404
    assert {**for_url.json(), "requestId": ""} == {**wrong.json(), "requestId": ""}
    assert for_basic.status_code == 401
    assert for_basic["WWW-Authenticate"].startswith("Basic")
    assert for_basic.json()["code"] == "invalid-credentials"
    assert Run.objects.count() == 0
    assert {reason for reason, _ in refusals()} == {"NetworkNotAllowed", "WrongToken"}


def test_a_client_without_an_address_is_in_no_network(github: IssuedHook) -> None:
    set_rules(github.hook, allowed_networks=["0.0.0.0/0"])

    assert call(github).status_code == 200
    assert call(github, REMOTE_ADDR="").status_code == 404


def test_the_hook_s_methods(github: IssuedHook) -> None:
    response = Client().get(path_of(github), headers=signed(b""))

    assert response.status_code == 405
    assert response["Allow"] == "HEAD, POST"
    assert Run.objects.count() == 0
    assert refusals() == [("MethodNotAllowed", "")]
    set_rules(github.hook, methods=["GET", "POST"])
    assert Client().get(path_of(github), headers=signed(b"")).status_code == 200


def test_methods_of_a_hook_without_a_sender(acme: Organisation) -> None:
    issued = make_hook(make_script(acme))
    set_rules(issued.hook, methods=["GET"])

    assert Client().get(path_of(issued)).status_code == 200
    Run.objects.all().delete()
    refused = Client().post(path_of(issued), b"x", content_type="text/plain")
    secure = Client().post(secure_path_of(issued), headers=basic(issued.hook.pk, issued.call_token))

    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")
    assert (secure.status_code, secure["Allow"]) == (405, "")
    assert Run.objects.count() == 0


def test_a_head_needs_no_signature_and_runs_nothing(github: IssuedHook) -> None:
    response = Client().head(path_of(github))

    assert (response.status_code, response.content) == (200, b"")
    assert Run.objects.count() == 0


def test_the_hook_s_own_size(github: IssuedHook) -> None:
    set_rules(github.hook, max_body_bytes=len(BODY))

    assert call(github).status_code == 200
    Run.objects.all().delete()
    longer = BODY + b" "
    response = call(github, longer)

    assert response.status_code == 413
    assert response.json()["code"] == "body-too-large"
    assert response.json()["detail"] == f"A payload may have at most {len(BODY)} bytes."
    assert Run.objects.count() == 0
    assert refusals() == [("BodyTooLarge", "")]


def test_a_hook_s_size_does_not_exceed_that_of_all(github: IssuedHook) -> None:
    set_rules(github.hook, max_body_bytes=10_000_000)

    with override_settings(HOOK_MAX_BODY_BYTES=8):
        assert call(github, b"12345678").status_code == 200
        assert call(github, b"123456789").status_code == 413


def fail(issued: IssuedHook, times: int, address: str = "192.0.2.1") -> set[int]:
    """Statuses of calls with a wrong signature."""
    return {call(issued, headers={}, REMOTE_ADDR=address).status_code for _ in range(times)}


def test_a_client_gets_sixty_refusals_a_minute(github: IssuedHook) -> None:
    assert fail(github, 60) == {401}
    forget_taken_notes()
    response = call(github, headers={}, REMOTE_ADDR="192.0.2.1")

    assert response.status_code == 429
    assert response.json()["code"] == "rate-limited"
    assert 1 <= int(response["Retry-After"]) <= 60
    assert "WWW-Authenticate" not in response
    assert Run.objects.count() == 0
    seen = "more than 60 wrong signatures of this client within a minute"
    assert refusals()[0] == ("RateLimited", seen)


def test_a_right_signature_runs_after_any_number_of_wrong_ones(github: IssuedHook) -> None:
    assert fail(github, 61) == {401, 429}
    responses = [call(github, REMOTE_ADDR="192.0.2.1") for _ in range(3)]

    assert [response.status_code for response in responses] == [200] * 3
    assert Run.objects.count() == 3
    assert fail(github, 1) == {429}


def test_wrong_signatures_beyond_the_limit_write_nothing_but_notes(
    transactional_db: None, github: IssuedHook
) -> None:
    fail(github, 61)
    with CaptureQueriesContext(connection) as captured:
        assert fail(github, 1) == {429}

    assert {query["sql"].split()[0] for query in captured.captured_queries} == {"SELECT"}


@pytest.mark.parametrize("overlap_seconds", [0, 60])
def test_failures_before_a_new_secret_do_not_count(
    github: IssuedHook, overlap_seconds: int
) -> None:
    fail(github, 61)
    set_secret_of(github.hook, "the new one", overlap_seconds=overlap_seconds)

    assert call(github, headers=signed(secret="the new one")).status_code == 200
    assert fail(github, 60) == {401}
    assert fail(github, 1) == {429}


def test_failures_without_a_secret_do_not_count_once_one_is_set(github: IssuedHook) -> None:
    Hook.objects.update(signing_secret=None)
    assert fail(github, 61) == {401, 429}
    set_secret_of(github.hook, SECRET)

    assert call(github, REMOTE_ADDR="192.0.2.1").status_code == 200
    assert fail(github, 1) == {401}


def test_others_are_not_throttled(github: IssuedHook) -> None:
    other = make_hook(github.hook.script)
    set_rules(other.hook, sender="github")
    set_secret_of(other.hook, SECRET)
    fail(github, 60)

    assert fail(github, 1, "192.0.2.1") == {429}
    assert fail(github, 1, "192.0.2.2") == {401}
    assert fail(other, 1, "192.0.2.1") == {401}


def test_an_ipv6_client_is_its_64(github: IssuedHook) -> None:
    fail(github, 60, "2001:db8::1")

    assert fail(github, 1, "2001:db8::2") == {429}
    assert fail(github, 1, "2001:db8:0:1::1") == {401}


def test_right_signatures_never_throttle(github: IssuedHook) -> None:
    statuses = {call(github, REMOTE_ADDR="192.0.2.1").status_code for _ in range(61)}

    assert statuses == {200}
    assert fail(github, 1) == {401}


def test_without_rate_limits_nobody_is_throttled(github: IssuedHook) -> None:
    with override_settings(IS_RATE_LIMITED=False):
        assert fail(github, 61) == {401}
        assert call(github, REMOTE_ADDR="192.0.2.1").status_code == 200
