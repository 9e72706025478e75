import pytest

from core.graphql.reply import GRAPHQL_RESPONSE, JSON, negotiate


@pytest.mark.parametrize(
    "accept",
    [
        "application/graphql-response+json",
        "application/graphql-response+json; charset=utf-8, application/json; charset=utf-8",
        "application/json, application/graphql-response+json",
        "Application/GraphQL-Response+JSON",
        "application/graphql-response+json, application/json;q=0.9",
        "application/graphql-response+json;q=0.5, text/html",
        "application/json;q=0, */*",
    ],
)
def test_a_client_that_names_the_newer_type_gets_it(accept: str) -> None:
    assert negotiate(accept) == GRAPHQL_RESPONSE


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        " ",
        "*/*",
        "application/*",
        "application/json",
        "application/json; charset=utf-8",
        "text/html, */*;q=0.1",
        "application/graphql-response+json;q=0.5, application/json",
        "application/graphql-response+json;q=0, */*",
        "application/json;q=high",
        "application/json; x*=bogus''y",
    ],
)
def test_every_other_client_of_json_gets_json(accept: str | None) -> None:
    assert negotiate(accept) == JSON


@pytest.mark.parametrize("accept", ["text/html", "image/*", "application/json;q=0", ";", "json"])
def test_a_client_that_accepts_neither_type_gets_406(accept: str) -> None:
    assert negotiate(accept) is None
