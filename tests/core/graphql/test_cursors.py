"""Forged cursors: all malformed ones get the same error."""

import base64
import json
from typing import Any

import pytest
from django.db.models import QuerySet
from hypothesis import example, given
from hypothesis import strategies as st

from accounts.models import ApiKey, AuthEvent, User
from core.graphql.connection import page_of
from core.graphql.problem import GraphQLProblem
from tests.factories import admin_graphql

# By name: to print a list of rows is to ask the database.
LISTS: dict[str, QuerySet[Any]] = {
    "keys": ApiKey.objects.all(),
    "events": AuthEvent.objects.all(),
    "users": User.objects.order_by("-created_at", "-id"),
}
names = st.sampled_from(sorted(LISTS))
# Asked for a count only.
NO_FIELD: Any = None
UUID = "00000000-0000-4000-8000-000000000000"
MALFORMED = ("BAD_USER_INPUT", "This is not the cursor of an answer.", {"field": "after"})


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()


def refusal(name: str, cursor: str) -> tuple[str, str, dict[str, str]] | None:
    """The error of the cursor; ``None`` if it is valid."""
    try:
        page_of(NO_FIELD, LISTS[name], 1, cursor)
    except GraphQLProblem as problem:
        return problem.code, problem.message, problem.extensions
    return None


anything_in_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
)


@given(name=names, cursor=st.text())
@example(name="keys", cursor=encoded(b"[" * 300))
@example(name="keys", cursor=encoded(b"[" * 3_000))
@example(name="keys", cursor=encoded(b"[" * 300_000))
@example(name="keys", cursor=encoded(b"9" * 380))
@example(name="keys", cursor="\0")
@example(name="keys", cursor="\ud800")
def test_other_text_is_not_a_cursor(name: str, cursor: str) -> None:
    assert refusal(name, cursor) == MALFORMED


@given(name=names, content=st.binary())
def test_other_bytes_are_not_a_cursor(name: str, content: bytes) -> None:
    assert refusal(name, encoded(content)) == MALFORMED


@given(name=names, key=anything_in_json)
def test_other_json_is_not_a_cursor(name: str, key: Any) -> None:
    assert refusal(name, encoded(json.dumps(key).encode())) == MALFORMED


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_out_of_range_is_malformed(moment: str) -> None:
    key = json.dumps([moment, UUID]).encode()

    assert refusal("keys", encoded(key)) == MALFORMED


@pytest.mark.parametrize("after", [encoded(b"[" * 300_000), encoded(b"[" * 380), "9" * 513, "é"])
def test_a_malformed_cursor_is_bad_input(acme_token: str, after: str) -> None:
    answer = admin_graphql(
        "query($after: String) { apiKeys(after: $after) { nodes { id } } }", acme_token, after=after
    )

    assert (answer.code, answer.errors[0]["extensions"]["field"]) == ("BAD_USER_INPUT", "after")
    assert answer.data is None


def test_the_longest_cursor_is_valid() -> None:
    key = json.dumps(["2026-11-20T12:00:00.123456+00:00", UUID]).encode()

    assert refusal("keys", encoded(key)) is None
