"""Error messages never contain a client's values or the server's secrets."""

import logging

import pytest
from graphql import GraphQLSyntaxError, parse

from core.graphql.problem import GraphQLCode, GraphQLProblem, syntax_error
from core.graphql.reply import GRAPHQL_RESPONSE, JSON
from tests.core.graphql.client import answer, codes, post, post_as_alice
from tests.core.graphql.schema import REFUSED_SECRET

PIN = 123456
BOTH_TYPES = pytest.mark.parametrize("accept", [GRAPHQL_RESPONSE, JSON])
REFUSED_STATUS = pytest.mark.parametrize(
    ("accept", "status"), [(GRAPHQL_RESPONSE, 400), (JSON, 200)]
)


@REFUSED_STATUS
@pytest.mark.parametrize("value", [PIN, [str(PIN)], {"a": PIN}, True])
def test_a_pin_of_the_wrong_type_in_a_variable_is_not_repeated(
    value: object, accept: str, status: int, calls: list[str]
) -> None:
    query = "mutation ($pin: String) { checkPinCode(pin: $pin) { result } }"

    response = post(query, variables={"pin": value}, accept=accept)

    assert response.status_code == status
    assert answer(response) == {
        "errors": [
            {
                "message": "Variable '$pin' of type 'String' got an invalid value at 'pin'.",
                "extensions": {"code": "BAD_USER_INPUT", "field": "pin"},
            }
        ]
    }
    assert calls == []


@REFUSED_STATUS
def test_a_pin_as_a_number_in_the_document_is_not_repeated(
    accept: str, status: int, calls: list[str]
) -> None:
    response = post(f"mutation {{ checkPinCode(pin: {PIN}) {{ result }} }}", accept=accept)

    assert response.status_code == status
    assert answer(response) == {
        "errors": [
            {
                "message": "Expected value of type 'String' for argument 'pin'.",
                "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"},
                "locations": [{"line": 1, "column": 30}],
            }
        ]
    }
    assert calls == []


@pytest.mark.parametrize(
    "query",
    [
        "mutation { checkPinCode(pin: [123456]) { result } }",
        "mutation { checkPinCode(pin: {a: 123456}) { result } }",
        "mutation { checkPinCode(pin: 123456.5) { result } }",
        "mutation { checkPinCode(pin: a123456) { result } }",
        'mutation { sendPinCode(sendVia: "123456") }',
        "mutation { sendPinCode(sendVia: Sms123456) }",
        "mutation { saveProfile(profile: 123456) }",
        "mutation { saveProfile(profile: [123456]) }",
        "mutation { saveProfile(profile: {name: 123456}) }",
        'mutation { saveProfile(profile: {name: "a", numbers: ["123456"]}) }',
        "mutation { saveProfile(profile: {numbers: 123456}) }",
        "mutation ($pin: String = 123456) { checkPinCode(pin: $pin) { result } }",
        'mutation { checkPinCode @include(if: "123456") { result } }',
        "{ echo(text: 123456) }",
        'mutation { checkPinCode(pin: "123456" { result } }',
        'mutation { checkPinCode("123456") { result } }',
        "mutation { checkPinCode(pin 123456) { result } }",
        "mutation { checkPinCode(pin: 123456a) { result } }",
        'mutation { checkPinCode(pin: "123456\n") { result } }',
        'mutation { checkPinCode(pin: "\\uz123456") { result } }',
        'mutation { checkPinCode(pin: """123456) { result } }',
        "mutation { checkPinCode(pin: '123456') { result } }",
        '"123456"',
        '"""123456""" { __typename }',
        "123456",
    ],
)
def test_no_value_in_a_document_is_repeated(query: str, calls: list[str]) -> None:
    response = post_as_alice(query)

    assert response.status_code == 400
    assert set(codes(response)) == {"GRAPHQL_VALIDATION_FAILED"}
    assert "123456" not in response.content.decode()
    assert calls == []


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        (PIN, "profile"),
        (None, "profile"),
        ({}, "profile"),
        ({"name": PIN}, "profile.name"),
        ({"name": "alice", "numbers": [1, str(PIN)]}, "profile.numbers[1]"),
        ({"name": "alice", str(PIN): 1}, "profile"),
    ],
)
def test_a_wrong_input_is_named_by_its_path(profile: object, field: str, calls: list[str]) -> None:
    query = "mutation ($profile: ProfileInput!) { saveProfile(profile: $profile) }"

    response = post_as_alice(query, variables={"profile": profile})

    assert response.status_code == 400
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": field,
    }
    assert str(PIN) not in response.content.decode()
    assert calls == []


def test_a_missing_variable_is_named(calls: list[str]) -> None:
    response = post_as_alice("query ($text: String!) { echo(text: $text) }")

    assert response.status_code == 400
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": "text",
    }
    assert calls == []


def test_a_null_variable_of_a_required_argument_is_named(calls: list[str]) -> None:
    query = 'query ($text: String = "x") { echo(text: $text) }'

    response = post_as_alice(query, variables={"text": None})

    assert response.status_code == 200
    assert answer(response)["data"] == {"echo": None}
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": "text",
    }
    assert calls == []


def test_a_flood_of_errors_is_cut_short() -> None:
    query = "mutation ($profile: ProfileInput!) { saveProfile(profile: $profile) }"
    profile = {"name": "alice", "numbers": ["x"] * 1_000}

    response = post_as_alice(query, variables={"profile": profile})

    assert len(codes(response)) == 20


def test_wrong_enum_value_in_the_document_is_answered_with_the_allowed_ones() -> None:
    response = post("mutation { sendPinCode(sendVia: Smss) }")

    message = answer(response)["errors"][0]["message"]
    assert message == (
        "Expected value of type 'SendVia' for argument 'sendVia'. Allowed: Both, Sms."
    )


def test_wrong_enum_value_in_a_variable_is_answered_with_the_allowed_ones() -> None:
    query = "mutation ($via: SendVia!) { sendPinCode(sendVia: $via) }"

    response = post(query, variables={"via": "Smss"})

    message = answer(response)["errors"][0]["message"]
    assert message == (
        "Variable '$via' of type 'SendVia!' got an invalid value at 'via'. Allowed: Both, Sms."
    )


def test_similar_field_is_suggested_for_an_unknown_one() -> None:
    message = answer(post_as_alice("{ mee { email } }"))["errors"][0]["message"]

    assert message == "Cannot query field 'mee' on type 'Query'. Did you mean 'me'?"


def test_errors_of_a_document_are_cut_short() -> None:
    response = post("{ " + " ".join(f"mee{number}" for number in range(100)) + " }")

    assert codes(response) == ["GRAPHQL_VALIDATION_FAILED"] * 20 + ["LIMIT_EXCEEDED"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "Syntax Error: Expected Name, found <EOF>."),
        ("", "Syntax Error: Unexpected <EOF>."),
        ("{ a(b: ) }", "Syntax Error: Unexpected ')'."),
        ("{ a(b 1) }", "Syntax Error: Expected ':', found Int."),
        ('{ a("s") }', "Syntax Error: Expected Name, found String."),
        ("{ a(b: $) }", "Syntax Error: Expected Name, found ')'."),
        ("fragment F in T { a }", "Syntax Error: Expected 'on', found Name."),
        ("secret", "Syntax Error: Unexpected Name."),
        ("{ a(b: 01) }", "Syntax Error: Invalid number."),
        ('{ a(b: "x', "Syntax Error: Unterminated string."),
        ("{ a ? }", "Syntax Error: Unexpected character."),
        ("query ($a: Int = $b) { a }", "Syntax Error: Unexpected variable."),
    ],
)
def test_a_syntax_error_says_what_is_wrong(document: str, message: str) -> None:
    with pytest.raises(GraphQLSyntaxError) as raised:
        parse(document)

    assert syntax_error(raised.value)["message"] == message


@BOTH_TYPES
def test_a_field_error_is_sent_together_with_the_data(accept: str) -> None:
    response = post_as_alice("{ me { email } gone: missing }", accept=accept)

    assert response.status_code == 200
    assert answer(response) == {
        "data": {"me": {"email": "alice@acme.example"}, "gone": None},
        "errors": [
            {
                "message": "No such script.",
                "extensions": {"code": "NOT_FOUND"},
                "locations": [{"line": 1, "column": 16}],
                "path": ["gone"],
            }
        ],
    }


@BOTH_TYPES
def test_a_problem_that_leaves_no_data_is_still_a_result(accept: str) -> None:
    response = post_as_alice("{ strictMe { email } }", accept=accept)

    assert response.status_code == 200
    assert answer(response)["data"] is None
    assert codes(response) == ["NOT_FOUND"]


def test_bad_input_names_its_field(calls: list[str]) -> None:
    response = post("mutation { sendPinCode }")

    assert response.status_code == 200
    assert answer(response)["data"] == {"sendPinCode": None}
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": "email",
    }


def test_a_rate_limit_is_a_429_without_data() -> None:
    response = post_as_alice("{ limited }")

    assert response.status_code == 429
    assert response["Retry-After"] == "17"
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "RATE_LIMITED",
        "retryAfter": 17,
    }
    assert "data" not in answer(response)


def test_a_rate_limit_is_a_200_under_the_older_type() -> None:
    response = post_as_alice("{ limited }", accept=JSON)

    assert response.status_code == 200
    assert response["Retry-After"] == "17"
    assert answer(response)["data"] == {"limited": None}
    assert codes(response) == ["RATE_LIMITED"]


def test_a_rate_limit_does_not_take_other_data_away() -> None:
    response = post_as_alice("{ limited me { email } }")

    assert response.status_code == 200
    assert response["Retry-After"] == "17"
    assert answer(response)["data"] == {"limited": None, "me": {"email": "alice@acme.example"}}


@BOTH_TYPES
@pytest.mark.parametrize("field", ["broken", "brokenInGraphql", "number"])
def test_an_unexpected_error_is_masked(field: str, accept: str) -> None:
    response = post_as_alice(f"{{ {field} }}", accept=accept)

    assert response.status_code == 200
    assert answer(response) == {
        "data": {field: None},
        "errors": [
            {
                "message": "Internal error.",
                "extensions": {"code": "INTERNAL", "requestId": "f00d"},
                "locations": [{"line": 1, "column": 3}],
                "path": [field],
            }
        ],
    }


def test_a_masked_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    post_as_alice("{ broken }")

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "f00d" in record.getMessage()
    assert "resolve_broken" in caplog.text
    assert REFUSED_SECRET in caplog.text


def test_the_log_does_not_quote_the_document(caplog: pytest.LogCaptureFixture) -> None:
    post_as_alice(f'{{ brokenInGraphql echo(text: "{PIN}") }}')

    assert "resolve_broken_in_graphql" in caplog.text
    assert str(PIN) not in caplog.text


def test_problems_of_clients_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    post_as_alice("{ missing limited }")

    assert caplog.records == []


def test_a_problem_needs_the_extension_of_its_code() -> None:
    with pytest.raises(TypeError, match="retryAfter"):
        GraphQLProblem(GraphQLCode.RATE_LIMITED, "Too many.")
    with pytest.raises(TypeError, match="field"):
        GraphQLProblem(GraphQLCode.BAD_USER_INPUT, "No.")
    with pytest.raises(ValueError, match="TEAPOT"):
        GraphQLProblem("TEAPOT", "No.")
