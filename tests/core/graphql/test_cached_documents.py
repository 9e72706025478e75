"""The cache of valid short documents."""

import pytest
from graphql import GraphQLSchema

from core.graphql import document
from core.graphql.document import parse_and_validate
from core.graphql.document_limits import DocumentLimits
from core.graphql.reply import RefusedRequest
from tests.core.graphql.schema import schema

LIMITS = DocumentLimits()
SCHEMA: GraphQLSchema = schema.graphql_schema


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    document._cached.cache_clear()


def test_a_repeated_document_is_not_validated_again() -> None:
    first = parse_and_validate(SCHEMA, "{ __typename }", LIMITS)

    assert parse_and_validate(SCHEMA, "{ __typename }", LIMITS) is first
    assert parse_and_validate(SCHEMA, "{ again: __typename }", LIMITS) is not first


def test_a_document_is_validated_again_for_other_limits() -> None:
    parse_and_validate(SCHEMA, "{ a: __typename }", LIMITS)

    with pytest.raises(RefusedRequest):
        parse_and_validate(SCHEMA, "{ a: __typename }", DocumentLimits(max_aliases=0))


@pytest.mark.parametrize(
    "query",
    [
        '{ __type(name: "4711") { name } }',
        '{ __type(name: """4711""") { name } }',
        "{ __typename }" + " " * document.MAX_CACHED_CHARACTERS,
    ],
)
def test_documents_with_strings_and_long_ones_are_not_cached(query: str) -> None:
    parse_and_validate(SCHEMA, query, LIMITS)

    assert document._cached.cache_info().currsize == 0


def test_a_refused_document_is_refused_again_and_not_cached() -> None:
    for _ in range(2):
        with pytest.raises(RefusedRequest):
            parse_and_validate(SCHEMA, "{ nothing }", LIMITS)

    assert document._cached.cache_info().currsize == 0
