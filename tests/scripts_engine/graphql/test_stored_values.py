"""Stored values at /admin/graphql: lists, single values, changes, scopes and tenants."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuthEvent, Organisation
from accounts.scopes import Scope
from core.graphql.connection import cursor_of
from scripts_engine.models import StoredValue
from scripts_engine.stored_values import set_stored_value
from tests.accounts.test_field_scopes import token_with
from tests.factories import admin_graphql, field_of, reply_of, run_lua

LIST = """query($prefix: String, $first: Int, $after: String) {
    storedValues(prefix: $prefix, first: $first, after: $after) {
        nodes { key value } pageInfo { hasNextPage endCursor } totalCount } }"""
GET = """query($key: String, $keyBase64: String) { storedValue(key: $key, keyBase64: $keyBase64) {
    key keyBase64 value revision expiresAt } }"""
SET = """mutation($key: String, $keyBase64: String, $value: String!, $at: DateTime, $seen: Int) {
    setStoredValue(
        key: $key, keyBase64: $keyBase64, value: $value, expiresAt: $at, expectedRevision: $seen
    ) { key revision updatedAt } }"""
DELETE = """mutation($key: String, $seen: Int) {
    deleteStoredValue(key: $key, expectedRevision: $seen) }"""


def stored(organisation: Organisation, key: str | bytes, value: Any = 1) -> StoredValue:
    raw = key.encode() if isinstance(key, str) else key
    return set_stored_value(organisation, key=raw, value=json.dumps(value), expires_at=None)


def keys_of(answer: Any) -> list[str]:
    return [node["key"] for node in answer.data["storedValues"]["nodes"]]


def test_values_are_listed_by_prefix_in_the_order_of_their_keys(
    acme: Organisation, globex: Organisation, acme_token: str
) -> None:
    for key in ("b:2", "a:1", "b:1", "c"):
        stored(acme, key)
    stored(globex, "b:9")

    answer = admin_graphql(LIST, acme_token, prefix="b:")

    assert keys_of(answer) == ["b:1", "b:2"]
    assert answer.data["storedValues"]["totalCount"] == 2


def test_pages_go_on_behind_the_last_key_whatever_its_bytes(
    acme: Organisation, acme_token: str
) -> None:
    stored(acme, b"\xff" * 256)
    stored(acme, b"\xff" * 255)
    stored(acme, "a")

    first = admin_graphql(LIST, acme_token, first=1)
    page = first.data["storedValues"]["pageInfo"]
    second = admin_graphql(LIST, acme_token, first=1, after=page["endCursor"])
    page = second.data["storedValues"]["pageInfo"]
    third = admin_graphql(LIST, acme_token, first=1, after=page["endCursor"])

    assert (keys_of(first), keys_of(second), keys_of(third)) == (["a"], [None], [None])
    assert third.data["storedValues"]["pageInfo"]["hasNextPage"] is False


@pytest.mark.parametrize("cursor", ["x", cursor_of(["not hex"]), cursor_of([])])
def test_malformed_cursor_is_refused(acme_token: str, cursor: str) -> None:
    answer = admin_graphql(LIST, acme_token, after=cursor)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "after")


def test_expired_value_is_neither_listed_nor_found(acme: Organisation, acme_token: str) -> None:
    value = stored(acme, "gone")
    StoredValue.objects.filter(pk=value.pk).update(expires_at=timezone.now() - timedelta(hours=1))

    assert keys_of(admin_graphql(LIST, acme_token)) == []
    assert admin_graphql(GET, acme_token, key="gone").data == {"storedValue": None}
    assert admin_graphql(DELETE, acme_token, key="gone").code == "NOT_FOUND"


def test_scripts_read_the_value_that_was_set(acme: Organisation, acme_token: str) -> None:
    set_ = admin_graphql(SET, acme_token, key="rate", value='{"eur": 7}')
    run = run_lua(acme, 'return tostring(store.get("rate").eur)')

    assert set_.data["setStoredValue"]["revision"] == 1
    assert reply_of(run) == "7"
    [event] = AuthEvent.objects.filter(kind="stored-value.set")
    assert event.organisation_id == acme.pk


def test_binary_key_is_named_in_base64(acme: Organisation, acme_token: str) -> None:
    key = base64.b64encode(b"\xff\x00").decode()

    admin_graphql(SET, acme_token, keyBase64=key, value="true")

    assert admin_graphql(GET, acme_token, keyBase64=key).data["storedValue"] == {
        "key": None,
        "keyBase64": key,
        "value": "true",
        "revision": 1,
        "expiresAt": None,
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"key": ""}, "key"),
        ({"key": "x" * 257}, "key"),
        ({"key": None}, "key"),
        ({"keyBase64": "eA=="}, "key"),
        ({"key": None, "keyBase64": "?"}, "keyBase64"),
        ({"value": "{"}, "value"),
        ({"value": "NaN"}, "value"),
        ({"value": json.dumps("x" * 65_536)}, "value"),
        ({"at": "2001-01-01T00:00:00Z"}, "expiresAt"),
    ],
    ids=[
        "empty key",
        "long key",
        "no key",
        "two keys",
        "no base64",
        "no json",
        "nan",
        "long value",
        "past",
    ],
)
def test_wrong_input_is_named_by_its_field(
    acme_token: str, changes: dict[str, Any], field: str
) -> None:
    answer = admin_graphql(SET, acme_token, **({"key": "k", "value": "1"} | changes))

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert StoredValue.objects.count() == 0


def test_changed_value_is_a_conflict(acme: Organisation, acme_token: str) -> None:
    stored(acme, "k", "theirs")
    stored(acme, "k", "theirs too")

    set_ = admin_graphql(SET, acme_token, key="k", value="2", seen=1)
    deleted = admin_graphql(DELETE, acme_token, key="k", seen=1)

    assert (set_.code, deleted.code) == ("CONFLICT", "CONFLICT")
    assert StoredValue.objects.get().value == '"theirs too"'


def test_revision_of_a_missing_value_is_not_found(acme_token: str) -> None:
    answer = admin_graphql(SET, acme_token, key="k", value="2", seen=1)

    assert answer.code == "NOT_FOUND"
    assert StoredValue.objects.count() == 0


def test_value_is_deleted_once(acme: Organisation, acme_token: str) -> None:
    stored(acme, "k")

    first = admin_graphql(DELETE, acme_token, key="k", seen=1)
    second = admin_graphql(DELETE, acme_token, key="k")

    assert first.data == {"deleteStoredValue": True}
    assert second.code == "NOT_FOUND"
    assert StoredValue.objects.count() == 0


def test_other_organisations_do_not_see_the_value(acme: Organisation, globex_token: str) -> None:
    stored(acme, "k", "ours")

    assert admin_graphql(GET, globex_token, key="k").data == {"storedValue": None}
    assert keys_of(admin_graphql(LIST, globex_token)) == []
    assert admin_graphql(DELETE, globex_token, key="k").code == "NOT_FOUND"
    assert StoredValue.objects.get().value == '"ours"'


def test_reader_changes_nothing(acme: Organisation) -> None:
    stored(acme, "k", "ours")
    token = token_with(acme, Scope.READ_PAYLOADS)

    assert admin_graphql(GET, token, key="k").data["storedValue"]["value"] == '"ours"'
    assert admin_graphql(SET, token, key="k", value="2").code == "FORBIDDEN"
    assert admin_graphql(DELETE, token, key="k").code == "FORBIDDEN"
    assert StoredValue.objects.get().value == '"ours"'


def test_writer_reads_no_value(acme: Organisation) -> None:
    token = token_with(acme, Scope.WRITE_SECRETS)

    assert admin_graphql(SET, token, key="k", value="2").errors == []
    assert admin_graphql(GET, token, key="k").code == "FORBIDDEN"
    assert admin_graphql(LIST, token).code == "FORBIDDEN"
    both = 'mutation { setStoredValue(key: "k", value: "3") { value } }'
    assert admin_graphql(both, token).code == "FORBIDDEN"
    assert StoredValue.objects.get().value == "2"
