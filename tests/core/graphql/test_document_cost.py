"""The cost of documents before they run, on the real schemas."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from graphql import parse

from config.api import admin_schema, user_schema
from core.graphql.document import select_operation
from core.graphql.document_cost import EXTRA_POINTS, LIST_SIZES, cost_of
from tests.factories import admin_graphql, user_graphql
from tests.work import counted_calls

SCHEMAS = [admin_schema.schema.graphql_schema, user_schema.schema.graphql_schema]
FEW = "{ runs(first: 2) { nodes { id } } }"
MANY = "{ runs(first: 200) { nodes { script { versions { diff } } } } }"


def cost(query: str, **variables: Any) -> int:
    schema = SCHEMAS[0]
    return cost_of(schema, select_operation(schema, parse(query), None), variables)


@pytest.mark.parametrize(
    ("query", "points"),
    [
        ("{ __typename }", 1),
        ("{ organisation { name isActive } }", 50 + 2),
        ("{ runs { pageInfo { hasNextPage } } }", 50 + 2),
        ("{ runs { totalCount } }", 50 + 501),
        ("{ runs { nodes { id } } }", 50 + 1 + 50),
        ("{ runs(first: 7) { nodes { id status } totalCount } }", 50 + 1 + 7 * 2 + 501),
        ("{ runs(first: 7) { nodes { script { source } } } }", 50 + 1 + 7 * (1 + 11)),
        ("{ runs(first: 7) { nodes { logs { text } } } }", 50 + 1 + 7 * (1 + 20)),
        ('{ script(id: "x") { versions { diff } } }', 50 + 51 + 100 * 401),
        ("{ runs(first: 200) { nodes { id script { name } } totalCount } }", 1_152),
        (
            "{ schedules(first: 7) { nodes { ticks { at outcome } nextTicks } } }",
            50 + 1 + 7 * (51 + 20 * 2 + 201),
        ),
        ("{ schedules(first: 7) { nodes { ticks(first: 90) { at } } } }", 51 + 7 * (51 + 90)),
        ("{ a: runs { totalCount } b: runs { totalCount } }", 2 * (50 + 501)),
    ],
)
def test_a_document_costs_what_the_documentation_says(query: str, points: int) -> None:
    assert cost(query) == points


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query($n: Int) { runs(first: $n) { nodes { id } } }", {"n": 9}),
        ("query($n: Int = 9) { runs(first: $n) { nodes { id } } }", {}),
        ("{ ...R } fragment R on Query { runs(first: 9) { nodes { id } } }", {}),
        ("{ runs(first: 9) { ...C } } fragment C on RunConnection { nodes { id } }", {}),
        (
            (
                "{ runs(first: 9) { ...C } } fragment C on RunConnection { ... { nodes { ...N } } }"
                " fragment N on Run { id }"
            ),
            {},
        ),
        ("{ runs(first: 9) { ... on RunConnection { nodes @skip(if: true) { id } } } }", {}),
        ("query A { runs(first: 9) { nodes { id } } }", {}),
    ],
)
def test_no_spelling_makes_a_document_cheaper(query: str, variables: dict[str, Any]) -> None:
    assert cost(query, **variables) == cost("{ runs(first: 9) { nodes { id } } }")


@pytest.mark.parametrize(
    ("given", "counted"),
    [({"n": None}, 50), ({}, 50), ({"n": 200}, 200), ({"n": 100_000}, 200), ({"n": -5}, 1)],
)
def test_a_page_counts_with_its_largest_size(given: dict[str, Any], counted: int) -> None:
    query = "query($n: Int) { runs(first: $n) { nodes { id } } }"

    assert cost(query, **given) == 51 + counted


def test_a_page_in_a_fragment_is_as_large_as_the_field_that_spreads_it_asks() -> None:
    fragment = " fragment C on RunConnection { nodes { id } }"
    query = "{ a: runs(first: 3) { ...C } b: runs(first: 5) { ...C } }" + fragment

    assert cost(query) == 51 + 3 + 51 + 5


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        (MANY, {}),
        ("query($n: Int) { runs(first: $n) { nodes { script { versions { diff } } } } }", {"n": 2}),
        (
            (
                "{ runs { ...C } } fragment C on RunConnection { nodes { script { ...S } } }"
                " fragment S on Script { versions { id number createdAt author source } }"
            ),
            {},
        ),
        (
            "{ "
            + " ".join(f"a{n}: runs(first: 200) {{ ...C }}" for n in range(30))
            + " } fragment C on RunConnection { nodes { id status hook { id name enabled } }"
            " totalCount totalCountIsCapped }",
            {},
        ),
    ],
)
def test_an_expensive_document_is_refused_before_its_first_statement(
    acme_token: str, query: str, variables: dict[str, Any]
) -> None:
    assert admin_graphql(FEW, acme_token).data is not None
    with CaptureQueriesContext(connection) as statements:
        answer = admin_graphql(query, acme_token, **variables)

    assert (answer.data, answer.code) == (None, "LIMIT_EXCEEDED")
    assert not [each for each in statements if "scripts_engine" in each["sql"]]


def test_the_limit_is_the_settings(acme_token: str, settings: Any) -> None:
    settings.GRAPHQL_MAX_COST = 53
    served = admin_graphql(FEW, acme_token)
    settings.GRAPHQL_MAX_COST = 52
    refused = admin_graphql(FEW, acme_token)

    assert served.data == {"runs": {"nodes": []}}
    assert refused.code == "LIMIT_EXCEEDED"
    assert "costs 53 points, of at most 52" in str(refused.errors)


def test_every_field_with_a_price_is_in_the_schema() -> None:
    fields = {
        name
        for schema in SCHEMAS
        for type_ in schema.type_map.values()
        for name in getattr(type_, "fields", {})
    }

    assert {*EXTRA_POINTS, *LIST_SIZES} <= fields


def test_a_chain_of_fragments_is_counted_link_by_link() -> None:
    chain = "".join(f" fragment F{n} on Run {{ id ...F{n + 1} }}" for n in range(400))
    query = "{ runs(first: 1) { nodes { ...F0 } } }" + chain + " fragment F400 on Run { id }"

    assert cost(query) == 50 + 1 + 401


def test_thirty_introspections_are_cut_short_before_they_are_much_work(db: None) -> None:
    types = "types { name fields { name args { name type { name } } type { name kind } } }"
    query = "{" + " ".join(f"a{n}: __schema {{ {types} }}" for n in range(30)) + "}"
    user_graphql(query.replace("types", "types", 1))
    with counted_calls() as counted:
        answer = user_graphql(query)

    assert (answer.data, answer.code) == (None, "LIMIT_EXCEEDED")
    assert counted.calls < 700_000
