"""Limits of one document, in every spelling."""

from graphlib import CycleError

import pytest
from django.http import HttpResponse
from graphql import get_introspection_query, parse, specified_rules
from graphql.validation import ValuesOfCorrectTypeRule

from core.graphql.document import LIMIT_RULES, SPECIFIED_RULES, ValuesOfCorrectTypeWithoutValuesRule
from core.graphql.document_limits import DocumentLimits, limit_violations
from core.graphql.reply import GRAPHQL_RESPONSE, JSON
from tests.core.graphql.client import answer, codes, post, post_as_alice
from tests.work import counted_calls

# About half a second's worth. A document of the size that is let in takes half of it at the worst.
MOST_CALLS = 1_500_000

CHECK_PIN = 'checkPinCode(email: "alice@acme.example", pin: "123456") { result }'


def aliased(count: int) -> str:
    return " ".join(f"a{number}: __typename" for number in range(count))


def managers(levels: int) -> str:
    """A query that is ``levels`` fields deep."""
    inner = levels - 2
    return "{ me " + "{ manager " * inner + "{ email }" + " }" * inner + " }"


def numbers(tokens: int) -> str:
    """A mutation of that many tokens, 17 of which are not numbers."""
    numbers = "1 " * (tokens - 17)
    return f'mutation {{ saveProfile(profile: {{name: "alice", numbers: [{numbers}]}}) }}'


def of_type(levels: int) -> str:
    """An introspection query that is ``levels`` fields deep."""
    inner = levels - 2
    return '{ __type(name: "User") ' + "{ ofType " * inner + "{ name }" + " }" * inner + " }"


def assert_over_limit(response: HttpResponse, calls: list[str]) -> None:
    assert response.status_code == 400
    assert codes(response) == ["LIMIT_EXCEEDED"]
    assert "data" not in answer(response)
    assert calls == []


@pytest.mark.parametrize(("accept", "status"), [(GRAPHQL_RESPONSE, 400), (JSON, 200)])
def test_a_thousand_aliased_guesses_run_none(accept: str, status: int, calls: list[str]) -> None:
    guesses = " ".join(f'a{n}: checkPinCode(pin: "1") {{result}}' for n in range(340))

    response = post_as_alice(f"mutation {{ {guesses} }}", accept=accept)

    assert response.status_code == status
    assert set(codes(response)) == {"LIMIT_EXCEEDED"}
    assert "data" not in answer(response)
    assert calls == []


def test_a_thousand_fields_do_not_pass_the_token_limit(calls: list[str]) -> None:
    assert_over_limit(post_as_alice("{" + "a:me{email}" * 1_000 + "}"), calls)


def test_thirty_aliases_are_taken() -> None:
    assert post(f"{{ {aliased(30)} }}").status_code == 200


def test_thirty_one_aliases_are_not(calls: list[str]) -> None:
    assert_over_limit(post(f"{{ {aliased(31)} }}"), calls)


def test_aliases_count_as_often_as_their_fragment_is_spread(calls: list[str]) -> None:
    query = f"{{ ...F ...F }} fragment F on Query {{ {aliased(16)} }}"

    assert_over_limit(post(query), calls)


def test_aliases_of_all_operations_count(calls: list[str]) -> None:
    query = f"query A {{ {aliased(16)} }} query B {{ {aliased(16)} }}"

    assert_over_limit(post(query, operationName="A"), calls)


def test_twelve_levels_are_taken() -> None:
    assert post_as_alice(managers(12)).status_code == 200


def test_thirteen_levels_are_not(calls: list[str]) -> None:
    assert_over_limit(post_as_alice(managers(13)), calls)


def test_levels_are_counted_through_fragments(calls: list[str]) -> None:
    query = (
        "{ me { manager { manager { manager { ...F } } } } }"
        "fragment F on User { manager { manager { manager { manager { ...G } } } } }"
        "fragment G on User { ... on User { manager { manager { manager { manager"
        " { email } } } } } }"
    )

    assert_over_limit(post_as_alice(query), calls)


def test_inline_fragments_add_no_level() -> None:
    query = "{ me " + "{ ... on User " * 20 + "{ email }" + " }" * 20 + " }"

    assert post_as_alice(query).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "{ ...A } fragment A on Query { ...A }",
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
        (
            "{ me { ...A } } fragment A on User { manager { ...B } }"
            " fragment B on User { manager { ...A } }"
        ),
    ],
)
def test_cyclic_fragments_are_invalid(query: str, calls: list[str]) -> None:
    response = post_as_alice(query)

    assert response.status_code == 400
    assert set(codes(response)) == {"GRAPHQL_VALIDATION_FAILED"}
    assert calls == []


def test_a_cycle_ends_without_validation_too() -> None:
    document = parse("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }")

    with pytest.raises(CycleError):
        limit_violations(document, DocumentLimits())


def test_a_bomb_of_fragments_is_refused_at_once(calls: list[str]) -> None:
    bomb = "".join(
        f"fragment F{n} on User {{ manager {{ ...F{n + 1} }} deputy {{ ...F{n + 1} }} }}"
        for n in range(100)
    )
    query = "{ me { ...F0 } }" + bomb + "fragment F100 on User { email }"

    with counted_calls() as counted:
        response = post_as_alice(query)

    assert counted.calls < MOST_CALLS
    assert response.status_code == 400
    assert set(codes(response)) == {"LIMIT_EXCEEDED"}
    assert calls == []


def test_a_bomb_within_the_depth_is_refused_by_its_fields(calls: list[str]) -> None:
    bomb = "".join(
        f"fragment F{n} on User {{ manager {{ ...F{n + 1} }} deputy {{ ...F{n + 1} }} }}"
        for n in range(10)
    )
    query = "{ me { ...F0 } }" + bomb + "fragment F10 on User { email __typename }"

    assert_over_limit(post_as_alice(query), calls)


def test_four_thousand_tokens_are_taken(calls: list[str]) -> None:
    response = post_as_alice(numbers(4_000))

    assert response.status_code == 200
    assert calls == ["saveProfile"]


def test_four_thousand_and_one_tokens_are_not(calls: list[str]) -> None:
    assert_over_limit(post_as_alice(numbers(4_001)), calls)


def test_the_token_limit_does_not_depend_on_validity(calls: list[str]) -> None:
    assert_over_limit(post("{" + "a " * 4_000), calls)


def test_comments_are_limited_too(calls: list[str]) -> None:
    assert_over_limit(post("#\n" * 4_001 + "{ __typename }"), calls)


@pytest.mark.parametrize("opening", ["[", "{a:", "{", "(a:["])
def test_deep_nesting_is_refused_by_the_parser(opening: str, calls: list[str]) -> None:
    query = "{ echo(text: " + opening * 1_000

    response = post_as_alice(query)

    assert response.status_code == 400
    assert len(codes(response)) == 1
    assert calls == []


def test_one_mutation_is_executed_per_document(calls: list[str]) -> None:
    post("mutation { __typename " + CHECK_PIN + "}")

    assert calls == ["checkPinCode"]


@pytest.mark.parametrize(
    "query",
    [
        f"mutation {{ a: {CHECK_PIN} b: {CHECK_PIN} }}",
        f"mutation {{ {CHECK_PIN} {CHECK_PIN} }}",
        f'mutation {{ {CHECK_PIN} sendPinCode(email: "alice@acme.example") }}',
        f"mutation {{ {CHECK_PIN} ... {{ b: {CHECK_PIN} }} }}",
        f"mutation {{ {CHECK_PIN} ...F }} fragment F on Mutation {{ b: {CHECK_PIN} }}",
        f"mutation {{ ...F ...F }} fragment F on Mutation {{ {CHECK_PIN} }}",
    ],
)
def test_two_mutations_in_a_document_run_none(query: str, calls: list[str]) -> None:
    assert_over_limit(post(query), calls)


def test_mutations_of_all_operations_count(calls: list[str]) -> None:
    query = f"mutation A {{ {CHECK_PIN} }} mutation B {{ {CHECK_PIN} }}"

    assert_over_limit(post(query, operationName="A"), calls)


def test_an_endpoint_may_take_several_mutations(calls: list[str]) -> None:
    post_as_alice(f"mutation {{ a: {CHECK_PIN} b: {CHECK_PIN} }}", admin=True)

    assert calls == ["checkPinCode", "checkPinCode"]


def test_the_introspection_query_of_the_tools_passes() -> None:
    query = get_introspection_query(
        specified_by_url=True,
        directive_is_repeatable=True,
        schema_description=True,
        input_value_deprecation=True,
    )

    response = post(query)

    assert response.status_code == 200
    assert answer(response)["data"]["__schema"]["queryType"]["name"] == "Query"


def test_introspection_has_a_depth_of_its_own() -> None:
    assert post(of_type(20)).status_code == 200


def test_introspection_has_an_end_too(calls: list[str]) -> None:
    assert_over_limit(post(of_type(21)), calls)


def test_introspection_is_counted_through_fragments(calls: list[str]) -> None:
    query = (
        "{ ...Q } fragment Q on Query { __schema { types { ...T } } }"
        f"fragment T on __Type {{ {'ofType { ' * 17} ...N {'}' * 17} }}"
        "fragment N on __Type { ofType { name } }"
    )

    assert_over_limit(post(query), calls)


def test_introspection_cannot_go_round_in_circles(calls: list[str]) -> None:
    query = "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }"

    assert_over_limit(post(query), calls)


def test_introspection_does_not_hide_the_depth_of_other_fields(calls: list[str]) -> None:
    query = managers(13).replace("{ me", "{ __schema { queryType { name } } me", 1)

    assert_over_limit(post_as_alice(query), calls)


@pytest.mark.parametrize(
    "query",
    [
        "{" + " ".join(f"f{n}" for n in range(3_990)) + "}",
        "{" + "me " * 3_990 + "}",
        "{" + "me{email}" * 999 + "}",
        "{" + '__type(name: "User"){name}' * 440 + "}",
        "{"
        + "".join(f"...F{n} " for n in range(300))
        + "}"
        + "".join(f"fragment F{n} on Query{{me{{email}}}}" for n in range(300)),
        "query(" + " ".join(f"$v{n}:Int" for n in range(900)) + "){__typename}",
    ],
)
def test_the_worst_small_documents_are_little_work(query: str) -> None:
    with counted_calls() as counted:
        response = post(query[:16_000])

    assert counted.calls < MOST_CALLS
    assert response.status_code in (400, 401)


def test_every_rule_of_the_specification_applies_before_the_limits() -> None:
    ours = {ValuesOfCorrectTypeWithoutValuesRule}
    worded_anew = {ValuesOfCorrectTypeRule}

    assert {*SPECIFIED_RULES, *LIMIT_RULES} == {*specified_rules} - worded_anew | ours


def test_an_invalid_document_is_not_measured(calls: list[str]) -> None:
    response = post(f"{{ nope {aliased(31)} }}")

    assert response.status_code == 400
    assert codes(response) == ["GRAPHQL_VALIDATION_FAILED"]
