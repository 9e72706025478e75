"""Limits on an answer's size and on a document's time."""

import json
import time
from typing import Any

import graphene
import pytest
from django.db import connection
from django.http import HttpRequest
from graphql import ExecutionResult, get_introspection_query, parse

from core.graphql.execution import AnswerLimits, BoundedExecution, execute_within_limits
from core.graphql.problem import GraphQLCode, GraphQLProblem, execution_error

# A statement that counts up for hours, in both databases.
ENDLESS = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e12)
    SELECT count(*) FROM n"""

done: list[str] = []


def pause(seconds: float) -> float:
    done.append("pause")
    time.sleep(seconds)
    return seconds


class Item(graphene.ObjectType):
    text = graphene.String(required=True, size=graphene.Int(default_value=1))
    odd = graphene.String()
    tags = graphene.List(graphene.String)
    number = graphene.Int()
    items = graphene.List(graphene.NonNull(lambda: Item), count=graphene.Int(default_value=1))
    missing = graphene.String()
    pause = graphene.Float(seconds=graphene.Float())

    def resolve_text(self, info: Any, size: int) -> str:
        return "x" * size

    def resolve_odd(self, info: Any) -> str:
        return "\1" * 100

    def resolve_tags(self, info: Any) -> list[str]:
        return ["x" * 100] * 10

    def resolve_number(self, info: Any) -> int:
        return 1

    def resolve_items(self, info: Any, count: int) -> list["Item"]:
        return [Item()] * count

    def resolve_pause(self, info: Any, seconds: float) -> float:
        return pause(seconds)

    def resolve_missing(self, info: Any) -> str:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")


class Query(graphene.ObjectType):
    items = graphene.List(graphene.NonNull(Item), count=graphene.Int(default_value=1))
    pause = graphene.Float(seconds=graphene.Float())
    endless = graphene.Int()

    def resolve_items(self, info: Any, count: int) -> list[Item]:
        return [Item()] * count

    def resolve_pause(self, info: Any, seconds: float) -> float:
        return pause(seconds)

    def resolve_endless(self, info: Any) -> int:
        with connection.cursor() as cursor:
            cursor.execute(ENDLESS)
            return int(cursor.fetchone()[0])


class Act(graphene.Mutation):
    class Arguments:
        seconds = graphene.Float(default_value=0)

    Output = graphene.NonNull(Item)

    def mutate(self, info: Any, seconds: float) -> Item:
        time.sleep(seconds)
        done.append("act")
        return Item()


class Mutation(graphene.ObjectType):
    act = Act.Field()


schema = graphene.Schema(query=Query, mutation=Mutation).graphql_schema


@pytest.fixture(autouse=True)
def _nothing_is_done() -> None:
    done.clear()


def execute(query: str, **limits: int) -> ExecutionResult:
    execution = type("Execution", (BoundedExecution,), {"limits": AnswerLimits(**limits)})
    return execute_within_limits(
        execution, schema, parse(query), context=None, variables={}, operation_name=None
    )


def refusal(result: ExecutionResult) -> tuple[Any, str, str]:
    """The data, the code and the message of a result that has one error."""
    assert result.errors is not None
    [error] = [execution_error(each, HttpRequest()) for each in result.errors]
    return result.data, error["extensions"]["code"], error["message"]


@pytest.mark.parametrize(
    "selection",
    [
        "text(size: 3000)",
        "odd",
        "tags",
        "missing",
        "items(count: 200) { __typename }",
        f"{'n' * 600}: number",
    ],
)
def test_every_part_of_an_answer_counts_against_its_bytes(selection: str) -> None:
    few = execute(f"{{ items {{ {selection} }} }}", max_bytes=8_000)
    many = execute(f"{{ items(count: 40) {{ {selection} }} }}", max_bytes=8_000)

    assert few.data is not None
    assert refusal(many) == (
        None,
        "LIMIT_EXCEEDED",
        "An answer holds at most 8,000 bytes. Ask for less at a time.",
    )


def test_an_answer_within_its_bytes_is_not_longer_than_they_are() -> None:
    query = "{ items(count: 9) { text(size: 7) odd tags number items(count: 2) { number } } }"
    needed = next(size for size in range(10_000, 40_000, 50) if execute(query, max_bytes=size).data)
    written = len(json.dumps(execute(query).data))

    assert written <= needed <= 1.1 * written


def test_the_values_of_an_answer_are_counted_through_all_lists() -> None:
    query = "{ items(count: 10) { items(count: %d) { number } } }"
    # A field and ten objects, a field and nine objects in each, a field in each of those.
    few = execute(query % 9, max_values=1 + 10 + 10 + 90 + 90)
    many = execute(query % 10, max_values=1 + 10 + 10 + 90 + 90)

    assert few.errors is None
    assert refusal(many) == (
        None,
        "LIMIT_EXCEEDED",
        "An answer holds at most 201 values. Ask for less at a time.",
    )


def test_an_error_names_the_field_at_which_the_limit_was_reached() -> None:
    result = execute("{ items(count: 3) { text(size: 50) } }", max_bytes=150)

    assert result.errors is not None
    assert result.errors[0].path == ["items", 1, "text"]
    assert result.errors[0].locations is not None


def test_introspection_fits() -> None:
    assert execute(get_introspection_query()).errors is None


def test_a_query_resolves_nothing_more_after_its_deadline(settings: Any) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.1
    result = execute("{ a: pause(seconds: 0.2) b: pause(seconds: 0) c: pause(seconds: 0) }")

    assert refusal(result) == (
        None,
        "LIMIT_EXCEEDED",
        "A document may take at most 0.1 seconds. Ask for less at a time.",
    )
    assert done == ["pause"]


@pytest.mark.django_db(transaction=True)
def test_a_statement_ends_at_the_deadline_of_its_query(settings: Any) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.3

    assert refusal(execute("{ endless }"))[:2] == (None, "LIMIT_EXCEEDED")


@pytest.mark.django_db(transaction=True)
def test_a_deadline_ends_with_its_document(settings: Any) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.3
    execute("{ endless }")
    with connection.cursor() as cursor:
        cursor.execute(ENDLESS.replace("1e12", "3e5"))
        counted = cursor.fetchone()

    assert counted == (300_000,)


def limit_of_statements() -> Any:
    """The server's process and the seconds that it gives a statement of this connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_backend_pid(), round(setting::int / 1000.0)"
            " FROM pg_settings WHERE name = 'statement_timeout'"
        )
        return cursor.fetchone()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL")
@pytest.mark.django_db(transaction=True)
def test_a_connection_gets_its_own_limit_again(settings: Any) -> None:
    before = limit_of_statements()
    with connection.statements_end_by(time.monotonic() + 5):
        during = limit_of_statements()
    after = limit_of_statements()

    assert before == after
    assert before[0] == during[0]
    assert (before[1], during[1]) == (10, 5)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL")
@pytest.mark.django_db(transaction=True)
def test_a_connection_gets_its_own_limit_again_after_a_statement_was_cancelled(
    settings: Any,
) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.3
    before = limit_of_statements()

    assert refusal(execute("{ endless }"))[:2] == (None, "LIMIT_EXCEEDED")
    assert limit_of_statements() == before


def test_introspection_has_values_of_its_own() -> None:
    query = "{ items { number } __schema { types { name } } }"
    types = len(schema.type_map)
    # The object of the schema and its field, then an object and a field for each type.
    fits = execute(query, max_introspection_values=2 + 2 * types)
    exceeds = execute(query, max_introspection_values=1 + 2 * types)

    assert fits.errors is None
    assert refusal(exceeds)[:2] == (None, "LIMIT_EXCEEDED")


def test_a_mutation_that_has_begun_is_not_interrupted(settings: Any) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.2
    result = execute("mutation { act(seconds: 0.4) { text items(count: 3) { number } } }")

    assert result.errors is None
    assert done == ["act"]


def test_no_further_mutation_begins_after_the_deadline(settings: Any) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.2
    result = execute("mutation { a: act(seconds: 0.4) { text } b: act { text } }")

    assert refusal(result) == (
        None,
        "LIMIT_EXCEEDED",
        "The document has taken 0.2 seconds; this mutation was not started.",
    )
    assert done == ["act"]


def test_reading_the_result_of_a_mutation_has_a_deadline_too(settings: Any) -> None:
    settings.GRAPHQL_DEADLINE_SECONDS = 0.1
    result = execute("mutation { act { a: pause(seconds: 0.2) b: pause(seconds: 0) } }")

    assert refusal(result)[:2] == (None, "LIMIT_EXCEEDED")
    assert done == ["act", "pause"]
