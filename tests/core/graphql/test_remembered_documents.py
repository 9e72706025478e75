"""Short documents are validated once, whatever is executed with them later."""

import pytest
from graphql import GraphQLSchema

from core.graphql import document
from core.graphql.document import parse_and_validate
from core.graphql.document_limits import DocumentLimits
from core.graphql.reply import Refused
from tests.core.graphql.schema import schema

LIMITS = DocumentLimits()
SCHEMA: GraphQLSchema = schema.graphql_schema


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    document._remembered.cache_clear()


def test_a_document_that_comes_again_is_not_validated_again() -> None:
    first = parse_and_validate(SCHEMA, "{ __typename }", LIMITS)

    assert parse_and_validate(SCHEMA, "{ __typename }", LIMITS) is first
    assert parse_and_validate(SCHEMA, "{ again: __typename }", LIMITS) is not first


def test_other_limits_judge_anew() -> None:
    parse_and_validate(SCHEMA, "{ a: __typename }", LIMITS)

    with pytest.raises(Refused):
        parse_and_validate(SCHEMA, "{ a: __typename }", DocumentLimits(max_aliases=0))


@pytest.mark.parametrize(
    "query",
    [
        '{ __type(name: "4711") { name } }',
        '{ __type(name: """4711""") { name } }',
        "{ __typename }" + " " * document.MAX_REMEMBERED_CHARACTERS,
    ],
)
def test_what_may_hold_a_secret_or_is_long_is_not_remembered(query: str) -> None:
    parse_and_validate(SCHEMA, query, LIMITS)

    assert document._remembered.cache_info().currsize == 0


def test_a_refused_document_is_refused_again_and_not_remembered() -> None:
    for _ in range(2):
        with pytest.raises(Refused):
            parse_and_validate(SCHEMA, "{ nothing }", LIMITS)

    assert document._remembered.cache_info().currsize == 0
