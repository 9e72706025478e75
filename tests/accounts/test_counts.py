"""Exact counts up to a limit, once per document."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import AuthEvent, Organisation
from tests.factories import admin_graphql, make_api_key, make_script

EVENTS = '{ authEvents(kind: "pin.sent") { totalCount totalCountIsCapped } }'


@contextmanager
def counts() -> Iterator[list[str]]:
    """The statements that counted."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as statements:
        yield found
    found += [each["sql"] for each in statements if "COUNT(" in each["sql"]]


def make_events(organisation: Organisation, number: int) -> None:
    AuthEvent.objects.bulk_create(
        AuthEvent(organisation=organisation, kind="pin.sent") for _ in range(number)
    )


def test_a_list_is_counted_exactly_to_ten_thousand_and_no_further(
    acme: Organisation, acme_token: str
) -> None:
    make_events(acme, 10_000)
    exact = admin_graphql(EVENTS, acme_token).data["authEvents"]
    make_events(acme, 2)
    with counts() as counted:
        capped = admin_graphql(EVENTS, acme_token).data["authEvents"]

    assert exact == {"totalCount": 10_000, "totalCountIsCapped": False}
    assert capped == {"totalCount": 10_000, "totalCountIsCapped": True}
    assert [("LIMIT 10001" in sql, "ORDER BY" in sql) for sql in counted] == [(True, True)]


@pytest.mark.parametrize(
    "name", ["users", "apiKeys", "scripts", "hooks", "runs", "sessions", "devices", "authEvents"]
)
def test_every_list_is_counted_within_bounds_and_once(acme_token: str, name: str) -> None:
    aliases = " ".join(
        f"a{n}: {name}(first: {n + 1}) {{ totalCount totalCountIsCapped }}" for n in range(3)
    )
    with counts() as counted:
        answer = admin_graphql(f"{{ {aliases} }}", acme_token)

    assert answer.errors == []
    assert len(counted) == 1
    assert "LIMIT 10001" in counted[0]


def test_lists_of_other_filters_are_counted_apart(acme: Organisation, acme_token: str) -> None:
    make_script(acme, name="echo")
    make_script(acme, name="reply")
    query = """query($name: String) {
      all: scripts { totalCount } one: scripts(name: $name) { totalCount }
      none: scripts(name: "nothing") { totalCount } same: scripts(name: "echo") { totalCount }
      hooks { totalCount } }"""
    with counts() as counted:
        answer = admin_graphql(query, acme_token, name="echo")

    assert {name: found["totalCount"] for name, found in answer.data.items()} == {
        "all": 2,
        "one": 1,
        "none": 0,
        "same": 1,
        "hooks": 0,
    }
    assert len(counted) == 4


def test_a_count_is_not_kept_for_the_next_document(acme: Organisation, acme_token: str) -> None:
    query = "{ apiKeys { totalCount } }"
    before = admin_graphql(query, acme_token).data
    make_api_key(acme, "another")

    assert before == {"apiKeys": {"totalCount": 1}}
    assert admin_graphql(query, acme_token).data == {"apiKeys": {"totalCount": 2}}


def test_members_are_counted_without_their_dates(acme_token: str) -> None:
    with counts() as counted:
        admin_graphql("{ users { totalCount } }", acme_token)

    assert [("created_at" in sql, "ORDER BY" in sql) for sql in counted] == [(False, False)]
