"""Pages of other origins that call a hook by its URL (CORS)."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook, update_hook
from hooks.models import Hook
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import basic, make_hook, make_script, set_rules
from tests.hooks.calls import path_of, secure_path_of
from tests.hooks.github import path_with_wrong_token

SHOP = "https://shop.example"
OTHER = "https://other.example"
# A script that says more about pages than the hook.
GENEROUS = """return Reply{
  status = 200,
  headers = {
    ["Access-Control-Allow-Origin"] = "*",
    ["Access-Control-Allow-Credentials"] = "true",
    ["Vary"] = "Accept",
    ["X-Own"] = "kept",
  },
  body = "done",
}"""


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    issued = make_hook(make_script(acme, GENEROUS))
    set_rules(issued.hook, allowed_origins=[SHOP], calls_per_minute=1000, methods=["POST", "PUT"])
    return issued


def preflight(path: str, origin: str | None = SHOP, **headers: str) -> Any:
    asked = {"Access-Control-Request-Method": "PUT", **headers}
    if origin is not None:
        asked["Origin"] = origin
    return Client().options(path, headers=asked)


def call(path: str, origin: str | None = SHOP, **headers: str) -> Any:
    given = headers | ({} if origin is None else {"Origin": origin})
    return Client().post(path, b"{}", content_type="application/json", headers=given)


def cors_headers(response: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in response.headers.items()
        if name.lower().startswith("access-control-")
    }


def test_a_preflight_is_answered_without_a_run(issued: IssuedHook) -> None:
    response = preflight(
        path_of(issued), **{"Access-Control-Request-Headers": "content-type, x-shop"}
    )

    assert (response.status_code, response.content) == (204, b"")
    assert cors_headers(response) == {
        "Access-Control-Allow-Origin": SHOP,
        "Access-Control-Allow-Methods": "HEAD, POST, PUT",
        "Access-Control-Allow-Headers": "content-type, x-shop",
        "Access-Control-Max-Age": "600",
    }
    assert response["Vary"].startswith("Origin")
    assert Run.objects.count() == 0


@pytest.mark.parametrize("asked", ["x-shop\r\nX: 1", "é", "a b", "a," * 600, ","])
def test_malformed_names_of_headers_are_not_allowed(issued: IssuedHook, asked: str) -> None:
    headers = {"Access-Control-Request-Headers": asked.replace("\r\n", " ")}
    response = preflight(path_of(issued), **headers)

    assert response.status_code == 204
    assert "Access-Control-Allow-Headers" not in response


def test_a_page_may_read_the_reply_and_our_headers_win(issued: IssuedHook) -> None:
    response = call(path_of(issued))

    assert (response.status_code, response.content) == (200, b"done")
    assert cors_headers(response).keys() == {
        "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers",
    }
    assert response["Access-Control-Allow-Origin"] == SHOP
    assert response["Vary"] == "Accept, Origin"
    assert response["X-Own"] == "kept"
    assert "Moonhook-Run-Id" in response["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("origin", [None, OTHER, "null", "HTTPS://SHOP.EXAMPLE", SHOP + ":444"])
def test_other_pages_may_not_read_the_reply(issued: IssuedHook, origin: str | None) -> None:
    response = call(path_of(issued), origin)

    assert response.status_code == 200
    assert cors_headers(response) == {}
    assert response["Vary"] == "Accept, Origin"


def test_a_page_may_read_why_its_call_was_refused(issued: IssuedHook) -> None:
    set_rules(issued.hook, max_body_bytes=1)
    too_large = call(path_of(issued))
    set_rules(issued.hook, max_body_bytes=None, sender="github")
    unsigned = call(path_of(issued))

    assert [too_large.status_code, unsigned.status_code] == [413, 401]
    assert [each["Access-Control-Allow-Origin"] for each in (too_large, unsigned)] == [SHOP, SHOP]
    assert Run.objects.count() == 0


@pytest.mark.parametrize("origin", [None, OTHER])
def test_preflights_of_others_are_answered_like_any_options(
    issued: IssuedHook, origin: str | None
) -> None:
    refused = [preflight(path_of(issued), origin), Client().options(path_of(issued))]

    assert [each.status_code for each in refused] == [405, 405]
    assert [cors_headers(each) for each in refused] == [{}, {}]


def test_a_wrong_token_is_answered_the_same_with_and_without_origins(issued: IssuedHook) -> None:
    wrong = preflight(path_with_wrong_token(issued))
    set_rules(issued.hook, allowed_origins=None, methods=None)
    without = preflight(path_of(issued))

    assert wrong.status_code == without.status_code == 405
    assert wrong["Allow"] == without["Allow"] == "GET, HEAD, POST"
    assert cors_headers(wrong) == cors_headers(without) == {}


def test_networks_count_before_origins(issued: IssuedHook) -> None:
    set_rules(issued.hook, allowed_networks=["192.0.2.0/24"])

    asked, called = preflight(path_of(issued)), call(path_of(issued))

    assert [asked.status_code, called.status_code] == [405, 404]
    assert cors_headers(asked) == cors_headers(called) == {}
    assert Run.objects.count() == 0


def test_the_secure_address_is_for_programs(issued: IssuedHook) -> None:
    headers = basic(issued.hook.pk, issued.call_token)

    asked = preflight(secure_path_of(issued), **headers)
    called = call(secure_path_of(issued), **headers)

    assert (asked.status_code, asked["Allow"]) == (405, "POST")
    assert called.status_code == 200
    assert "Access-Control-Expose-Headers" not in called
    assert called.headers.get("Access-Control-Allow-Origin") != SHOP


def test_without_origins_the_script_says_what_it_likes(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, GENEROUS))

    assert call(path_of(issued))["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://shop.example", "https://shop.example"),
        (" HTTPS://Shop.Example:443 ", "https://shop.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://shop.example:80", "http://shop.example"),
        ("https://[::1]:8443", "https://[::1]:8443"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ],
)
def test_origins_are_stored_as_browsers_send_them(
    acme: Organisation, given: str, stored: str
) -> None:
    hook = make_hook(make_script(acme)).hook

    update_hook(hook, allowed_origins=[given, given], calls_per_minute=60)

    assert Hook.objects.get().allowed_origins == [stored]


@pytest.mark.parametrize(
    "given",
    [
        "*",
        "null",
        "shop.example",
        "https://",
        "https://shop.example/",
        "https://shop.example/page",
        "https://user@shop.example",
        "https://shop.example:0",
        "https://shop.example:65536",
        "https://*.example",
        "https://bücher.example",
        "ftp://shop.example",
        "https://shop.example\nhttps://other.example",
        "https://-shop.example",
        "",
    ],
)
def test_other_origins_are_refused(acme: Organisation, given: str) -> None:
    hook = make_hook(make_script(acme)).hook

    with pytest.raises(ValidationError) as refused:
        update_hook(hook, allowed_origins=[SHOP, given], calls_per_minute=60)

    assert list(refused.value.message_dict) == ["allowed_origins"]
    assert Hook.objects.get().allowed_origins is None


@pytest.mark.parametrize(
    "changes",
    [
        {"allowed_origins": [SHOP]},
        {"allowed_origins": [f"https://{n}.example" for n in range(21)], "calls_per_minute": 60},
    ],
    ids=["no-limit", "too-many"],
)
def test_origins_need_a_limit_and_have_one(acme: Organisation, changes: dict[str, Any]) -> None:
    hook = make_hook(make_script(acme)).hook

    with pytest.raises(ValidationError) as refused:
        update_hook(hook, **changes)

    assert list(refused.value.message_dict) == ["allowed_origins"]
    assert Hook.objects.get().allowed_origins is None


def test_the_limit_stays_while_there_are_origins(issued: IssuedHook) -> None:
    with pytest.raises(ValidationError):
        update_hook(issued.hook, calls_per_minute=None)

    assert Hook.objects.get().calls_per_minute == 1000
