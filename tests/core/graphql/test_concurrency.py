"""Concurrent documents: limits, shares of keys, and the response without a free place."""

from contextlib import ExitStack
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from accounts.models import Organisation, User
from config.api.endpoints import documents, holder_of
from core.graphql.reply import GRAPHQL_RESPONSE, JSON
from scripts_engine.graphql import mutations
from scripts_engine.models import Run
from scripts_engine.runs.execution import try_script
from tests.core.graphql.client import answer, post, post_as_alice, post_raw
from tests.core.graphql.endpoints import bulkhead
from tests.factories import (
    admin_graphql,
    device_login,
    make_device_token,
    make_script,
    open_session,
    user_graphql,
)

ALICES = "alice's session"
NOBODYS = "nobody"
ME = "{ me { email } }"
SEND = 'mutation { sendPinCode(email: "alice@acme.example") }'
BOTH_TYPES = pytest.mark.parametrize("accept", [GRAPHQL_RESPONSE, JSON])
BOTH_ENDPOINTS = pytest.mark.parametrize("admin", [False, True])


@pytest.fixture(autouse=True)
def no_document_is_small(settings: Any) -> None:
    settings.GRAPHQL_SHORT_LENGTH = 0


@pytest.fixture
def taken() -> Any:
    """Takes places like documents in execution."""
    with ExitStack() as places:
        yield lambda *holders: [places.enter_context(bulkhead.place(each)) for each in holders]
    assert bulkhead.held == 0


def assert_busy(response: HttpResponse, calls: list[str]) -> None:
    assert response.status_code == 503
    assert response["Retry-After"] == "1"
    assert answer(response) == {
        "errors": [
            {
                "message": "Too many documents are being executed. Nothing was done; try again.",
                "extensions": {"code": "UNAVAILABLE", "retryAfter": 1},
            }
        ]
    }
    assert calls == []


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_a_key_beyond_its_share_is_refused_and_others_are_served(
    accept: str, admin: bool, taken: Any, calls: list[str]
) -> None:
    taken(ALICES, ALICES)

    assert_busy(post_as_alice(ME, admin=admin, accept=accept), calls)
    assert post(SEND).status_code == 200
    assert calls == ["sendPinCode"]


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_no_document_is_served_while_all_places_are_taken(
    accept: str, admin: bool, taken: Any, calls: list[str]
) -> None:
    taken("acme", "globex", "initech")

    assert_busy(post_as_alice(ME, admin=admin, accept=accept), calls)


def test_every_document_releases_its_place(calls: list[str]) -> None:
    unfit = ["{", "{ nope }", "{ broken }", "query ($text: String!) { echo(text: $text) }"]
    for document in [ME, *unfit]:
        post_as_alice(document)
        post_as_alice(document, admin=True)
        post(document)

    assert bulkhead.held == 0
    assert post_as_alice(ME).status_code == 200


def test_without_a_session_documents_share_the_places_of_their_network(
    taken: Any, calls: list[str]
) -> None:
    taken(NOBODYS, NOBODYS)

    assert_busy(post(SEND), calls)
    assert_busy(post("{ __schema { queryType { name } } }"), calls)
    assert_busy(post("{"), calls)


def test_a_document_still_holds_one_place_once_its_session_is_known(
    taken: Any, calls: list[str]
) -> None:
    taken("acme", "globex")

    assert post_as_alice(ME).status_code == 200


def test_a_body_is_read_before_a_place_is_taken(taken: Any) -> None:
    taken("acme", "globex", "initech")

    response = post_raw("{", headers={"Authorization": "Bearer alice"}, admin=True)

    assert response.status_code == 400


def test_programs_hold_the_places_of_their_organisation_on_the_real_endpoint(
    acme: Organisation, acme_token: str, globex_token: str
) -> None:
    places = f"organisation {acme.pk}"
    with documents.place(places), documents.place(places):
        refused = admin_graphql("{ organisation { name } }", acme_token)
        served = admin_graphql("{ organisation { name } }", globex_token)

    assert (refused.status, refused.code) == (503, "UNAVAILABLE")
    assert served.data == {"organisation": {"name": "Globex"}}
    assert admin_graphql("{ organisation { name } }", acme_token).data is not None


def test_people_hold_places_of_their_own_on_the_real_endpoint(alice: User, bob: User) -> None:
    alices = open_session(device_login(make_device_token(alice)))
    bobs = open_session(device_login(make_device_token(bob)))
    places = f"user {alice.pk}"
    with documents.place(places), documents.place(places):
        refused = user_graphql("{ me { email } }", alices)
        served = user_graphql("{ me { email } }", bobs)

    assert (refused.status, refused.code) == (503, "UNAVAILABLE")
    assert served.data == {"me": {"email": "bob@example.com"}}


def test_a_document_releases_its_place_while_its_script_runs(
    acme: Organisation, acme_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_script(acme, "return 1")
    held = []

    def try_and_look(*arguments: Any, **named: Any) -> Run:
        held.append(documents.held)
        return try_script(*arguments, **named)

    monkeypatch.setattr(mutations, "try_script", try_and_look)

    ran = admin_graphql(f'mutation {{ runScript(script: "{script.pk}") {{ status }} }}', acme_token)

    assert ran.data == {"runScript": {"status": "Succeeded"}}
    assert held == [0]
    assert documents.held == 0


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("192.0.2.7", "client 192.0.2.7"),
        ("2001:db8::1:2:3:4", "client 2001:db8::/64"),
    ],
)
def test_without_a_session_the_holder_is_the_clients_network(address: str, holder: str) -> None:
    request = RequestFactory().post("/user/graphql", REMOTE_ADDR=address)

    assert holder_of(request, None) == holder


def test_a_small_document_needs_no_place(taken: Any, calls: list[str], settings: Any) -> None:
    settings.GRAPHQL_SHORT_LENGTH = 500
    taken("acme", "globex", "initech")

    assert post(SEND).status_code == 200
    assert post_as_alice(ME).status_code == 200


@pytest.mark.parametrize("document", ["{ __schema { queryType { name } } }", f"{ME}{' ' * 2000}"])
def test_introspection_and_long_documents_need_a_place(
    document: str, taken: Any, calls: list[str], settings: Any
) -> None:
    settings.GRAPHQL_SHORT_LENGTH = 500
    taken("acme", "globex", "initech")

    assert_busy(post_as_alice(document, admin=True), calls)


def test_a_short_document_that_costs_much_needs_a_place(
    taken: Any, calls: list[str], settings: Any
) -> None:
    settings.GRAPHQL_SHORT_LENGTH, settings.GRAPHQL_SMALL_COST = 500, 49
    taken("acme", "globex", "initech")

    assert_busy(post_as_alice(ME, admin=True), calls)
