"""PUT /admin/blobs/<sha256> and missingBlobs: sources that wait for a plan."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from accounts.flows.api_keys import issue_api_key
from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from accounts.scopes import Scope
from scripts_engine.models import Blob, RunStorage
from scripts_engine.plans.blobs import forget_unused_blobs
from tests import factories
from tests.client import Client
from tests.factories import admin_graphql, bearer, make_script
from tests.scripts_engine.plans.manifests import a_script, digest, planned, upload
from tests.written import nothing_written

SOURCE = "return 'ä'"
KEEP = "mutation($sources: [String!]!) { keepBlobs(sources: $sources) }"
MISSING = "query($digests: [String!]!) { missingBlobs(digests: $digests) }"


def put(token: str | None, path: str, body: str | bytes = SOURCE, **headers: str) -> Any:
    headers |= bearer(token) if token else {}
    return Client().put(f"/admin/blobs/{path}", body, content_type="text/plain", headers=headers)


def token_with(organisation: Organisation, *scopes: Scope) -> str:
    issued = issue_api_key(organisation, name="ci", scopes=frozenset(scopes))
    return factories.open_session(factories.api_key_login(issued))


def test_a_source_is_kept(acme: Organisation, acme_token: str) -> None:
    response = put(acme_token, digest(SOURCE))

    assert (response.status_code, response.content) == (201, b"")
    blob = Blob.objects.get()
    assert (blob.organisation, blob.digest, blob.source) == (acme, digest(SOURCE), SOURCE)


def test_a_source_is_kept_once(acme_token: str) -> None:
    put(acme_token, digest(SOURCE))
    Blob.objects.update(used_at=timezone.now() - timedelta(minutes=50))

    response = put(acme_token, digest(SOURCE))

    assert (response.status_code, response.content) == (204, b"")
    assert Blob.objects.get().used_at > timezone.now() - timedelta(minutes=1)


def test_write_drafts_is_enough(acme: Organisation) -> None:
    token = token_with(acme, Scope.WRITE_DRAFTS)

    assert put(token, digest(SOURCE)).status_code == 201


def test_other_scopes_are_not_enough(acme: Organisation) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS, Scope.PUBLISH, Scope.WRITE_HOOKS)

    with nothing_written(besides=AuthEvent):
        response = put(token, digest(SOURCE))

    document = response.json()
    assert response.status_code == 403
    assert (document["code"], document["scope"]) == ("forbidden", "WriteDrafts")
    event = AuthEvent.objects.get(kind=AuthEventKind.SCOPE_REFUSED)
    assert event.reason == "WriteDrafts"


def test_nobody_keeps_a_source_without_a_session(db: None) -> None:
    with nothing_written():
        response = put(None, digest(SOURCE))

    assert (response.status_code, response.json()["code"]) == (401, "not-authenticated")
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_an_unknown_session_keeps_no_source(db: None) -> None:
    with nothing_written():
        response = put("mhx_unknown", digest(SOURCE))

    assert (response.status_code, response.json()["code"]) == (401, "session-invalid")


def test_the_session_of_a_person_keeps_no_source(alice: User) -> None:
    issued = factories.make_device_token(alice)
    token = factories.open_session(factories.device_login(issued))

    with nothing_written():
        response = put(token, digest(SOURCE))

    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_a_page_of_another_site_keeps_no_source(acme_token: str) -> None:
    client = Client()
    client.cookies["moonhook_session"] = acme_token

    with nothing_written():
        response = client.put(
            f"/admin/blobs/{digest(SOURCE)}",
            SOURCE,
            content_type="text/plain",
            headers={"Sec-Fetch-Site": "cross-site"},
        )

    assert (response.status_code, response.json()["code"]) == (403, "cross-origin")


def test_another_content_is_not_kept(acme_token: str) -> None:
    with nothing_written():
        response = put(acme_token, digest("return 2"))

    assert (response.status_code, response.json()["code"]) == (400, "digest-mismatch")


@pytest.mark.parametrize("path", ["x", "%0A", "A" * 64, "0" * 63, digest(SOURCE).upper()])
def test_an_address_that_is_no_digest_is_not_found(acme_token: str, path: str) -> None:
    with nothing_written():
        response = put(acme_token, path)

    assert (response.status_code, response.json()["code"]) == (404, "not-found")


@pytest.mark.parametrize("path", ["", "x/y", f"{digest(SOURCE)}/"])
def test_an_address_beside_is_not_found(acme_token: str, path: str) -> None:
    with nothing_written():
        response = put(acme_token, path)

    assert (response.status_code, response.json()["code"]) == (404, "not-found")


@pytest.mark.parametrize("body", [b"return '\xff'", b"return '\0'"])
def test_bytes_that_are_no_text_are_not_kept(acme_token: str, body: bytes) -> None:
    with nothing_written():
        response = put(acme_token, hashlib.sha256(body).hexdigest(), body)

    assert (response.status_code, response.json()["code"]) == (400, "validation-error")


def test_a_source_that_is_too_large_is_not_kept(acme_token: str) -> None:
    body = "x" * 65_537
    with nothing_written():
        response = put(acme_token, digest(body), body)

    assert (response.status_code, response.json()["code"]) == (413, "body-too-large")


@pytest.mark.parametrize("method", ["get", "post", "delete", "options"])
def test_other_methods_are_refused(acme_token: str, method: str) -> None:
    with nothing_written():
        response = getattr(Client(), method)(
            f"/admin/blobs/{digest(SOURCE)}", headers=bearer(acme_token)
        )

    assert (response.status_code, response["Allow"]) == (405, "PUT")


def test_too_many_sources_are_refused(acme_token: str) -> None:
    put(acme_token, digest(SOURCE))

    with override_settings(BLOBS_PER_ORGANISATION=1), nothing_written():
        response = put(acme_token, digest("return 2"), "return 2")

    assert (response.status_code, response.json()["code"]) == (409, "limit-exceeded")


def test_a_source_counts_against_the_quota(acme: Organisation, acme_token: str) -> None:
    Organisation.objects.filter(pk=acme.pk).update(run_bytes_quota=2_000)
    put(acme_token, digest(SOURCE))

    response = put(acme_token, digest("x" * 2_000), "x" * 2_000)

    assert (response.status_code, response.json()["code"]) == (409, "limit-exceeded")
    assert RunStorage.objects.get().definition_bytes == 1024 + len(SOURCE.encode())


# --- Forgotten ------------------------------------------------------------------------------------


def test_upkeep_forgets_unused_sources(acme: Organisation) -> None:
    upload(acme, "return 1", "return 2")
    hour_ago = timezone.now() - timedelta(hours=1)
    Blob.objects.filter(digest=digest("return 1")).update(used_at=hour_ago)

    assert forget_unused_blobs() == 1

    assert [blob.source for blob in Blob.objects.all()] == ["return 2"]
    assert RunStorage.objects.get().definition_bytes == 1024 + len("return 2")


def test_a_plan_keeps_its_sources_for_its_hour(acme: Organisation) -> None:
    upload(acme, "return 1")
    Blob.objects.update(used_at=timezone.now() - timedelta(minutes=59))

    planned(acme, a_script())
    Blob.objects.update(used_at=Blob.objects.get().used_at - timedelta(minutes=59))

    assert forget_unused_blobs() == 0


# --- Missing --------------------------------------------------------------------------------------


def test_missing_blobs_are_those_without_a_source(acme: Organisation, acme_token: str) -> None:
    upload(acme, "return 1")
    make_script(acme, "return 2")
    digests = [digest(f"return {number}") for number in (3, 1, 2, 3)]

    answer = admin_graphql(MISSING, acme_token, digests=digests)

    assert answer.data == {"missingBlobs": [digest("return 3")]}


def test_sources_of_others_are_missing(globex: Organisation, acme_token: str) -> None:
    upload(globex, "return 1")
    make_script(globex, "return 2")
    digests = [digest("return 1"), digest("return 2")]

    answer = admin_graphql(MISSING, acme_token, digests=digests)

    assert answer.data == {"missingBlobs": digests}


@pytest.mark.parametrize("digests", [["x"], ["A" * 64], ["0" * 64] * 1_001])
def test_what_is_no_digest_is_refused(acme_token: str, digests: list[str]) -> None:
    answer = admin_graphql(MISSING, acme_token, digests=digests)

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == "digests"


# --- keepBlobs ------------------------------------------------------------------------------------


def test_many_sources_are_kept_at_once(acme: Organisation, acme_token: str) -> None:
    put(acme_token, digest(SOURCE))

    answer = admin_graphql(KEEP, acme_token, sources=[SOURCE, "return 2", "return 2"])

    kept = [digest(SOURCE), digest("return 2"), digest("return 2")]
    assert answer.data["keepBlobs"] == kept
    blobs = Blob.objects.filter(organisation=acme).values_list("source", flat=True)
    assert sorted(blobs) == sorted([SOURCE, "return 2"])


def test_of_many_sources_a_wrong_one_is_named_and_none_is_kept(acme_token: str) -> None:
    with nothing_written():
        answer = admin_graphql(KEEP, acme_token, sources=["return 1", "-- " + 65_536 * "x"])

    assert answer.code == "BAD_USER_INPUT"
    [error] = answer.errors
    assert error["extensions"]["field"] == "sources"
    assert error["message"].startswith("sources[1]: A source may have at most 65536 bytes")


def test_many_sources_are_not_kept_without_write_drafts(acme: Organisation) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS, Scope.PUBLISH, Scope.WRITE_HOOKS)

    with nothing_written(besides=AuthEvent):
        answer = admin_graphql(KEEP, token, sources=[SOURCE])

    [error] = answer.errors
    assert (answer.code, error["extensions"]["scope"]) == ("FORBIDDEN", "WriteDrafts")


@override_settings(BLOBS_PER_ORGANISATION=1)
def test_many_sources_count_against_the_limit(acme_token: str) -> None:
    with nothing_written():
        answer = admin_graphql(KEEP, acme_token, sources=["return 1", "return 2"])

    assert answer.code == "LIMIT_EXCEEDED"
