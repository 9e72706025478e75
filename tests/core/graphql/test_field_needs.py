"""What a document needs, on a schema of its own: before anything runs, and linear in its text."""

import pytest
from graphql import build_schema, parse

from core.graphql.document import Operation, select_operation
from core.graphql.field_needs import FieldAccess, FieldNeeds, Unmet, needs, unmet_needs

schema = build_schema("""
    type Query { book: Book  thing: Thing  either: Either  open: Int  unnamed: Int }
    type Mutation { write(text: String, secret: String): Book }
    interface Thing { name: String }
    type Book implements Thing { name: String  text: String  next: Book }
    type Person implements Thing { name: String  phone: String }
    union Either = Book | Person
""")


def table() -> FieldNeeds:
    made = FieldNeeds()
    made.register(
        "Query",
        fields={
            "book": needs("read"),
            "thing": needs("read"),
            "either": needs("read"),
            "open": needs(),
        },
    )
    made.register("Mutation", fields={"write": needs("write", secret="secrets")})
    made.register("Book", needs("read"), {"text": needs("texts")})
    made.register("Person", needs("people"))
    return made


def operation(query: str) -> Operation:
    return select_operation(schema, parse(query), None)


def unmet(query: str, *held: str) -> list[Unmet]:
    return unmet_needs(schema, table(), operation(query), frozenset(held))


def missing(query: str, *held: str) -> dict[str, str]:
    return {".".join(one.path): " ".join(sorted(one.names)) for one in unmet(query, *held)}


def test_what_is_held_is_no_error() -> None:
    assert missing("{ book { name text next { text } } }", "read", "texts") == {}


@pytest.mark.parametrize(
    "query",
    [
        "{ book { text } }",
        "{ book { ...Words } } fragment Words on Book { text }",
        "{ book { ... on Book { text } } }",
        "{ book { ... { text } } }",
        "{ book { ...A } } fragment A on Book { ...B } fragment B on Book { text }",
        "{ book { text @skip(if: true) } }",
        "query($no: Boolean = false) { book { text @include(if: $no) } }",
        "{ book { ... @include(if: false) { text } } }",
    ],
)
def test_a_field_counts_however_it_is_asked_for(query: str) -> None:
    assert missing(query, "read") == {"book.text": "texts"}


def test_an_alias_is_in_the_path_and_hides_nothing() -> None:
    assert missing("{ b: book { name: text } }", "read") == {"b.name": "texts"}


def test_each_field_is_one_error_in_the_order_of_the_document() -> None:
    query = "{ book { text next { text } } either { ... on Person { phone } } }"

    assert missing(query) == {
        "book": "read",
        "book.text": "texts",
        "book.next": "read",
        "book.next.text": "texts",
        "either": "read",
        "either.phone": "people",
    }
    assert [one.path[-1] for one in unmet(query)] == [
        "book",
        "text",
        "next",
        "text",
        "either",
        "phone",
    ]


def test_a_field_of_an_interface_needs_what_any_of_its_types_needs() -> None:
    assert missing("{ thing { name } }", "read") == {"thing.name": "people"}
    assert missing("{ thing { name } }", "read", "people") == {}


def test_a_type_condition_is_checked_by_its_own_type() -> None:
    query = "{ either { ... on Book { name } ... on Person { name } } }"

    assert missing(query, "read") == {"either.name": "people"}


def test_introspection_and_typenames_are_free() -> None:
    query = '{ __typename __schema { types { name } } __type(name: "Book") { name } }'

    assert missing(query) == {}
    assert missing("{ book { __typename } }", "read") == {}


def test_an_argument_may_need_more() -> None:
    assert missing('mutation { write(text: "a") { name } }', "read", "write") == {}
    given = 'mutation { write(secret: "a") { name } }'
    assert missing(given, "read", "write") == {"write": "secrets"}
    null = "mutation($s: String) { write(secret: $s) { name } }"
    assert missing(null, "read", "write") == {"write": "secrets"}


def test_what_nobody_has_named_is_refused_to_everybody() -> None:
    assert missing("{ unnamed open }", "read", "write", "texts", "people", "secrets") == {
        "unnamed": ""
    }


def test_an_endpoint_without_a_table_refuses_every_field() -> None:
    errors = FieldAccess().errors(schema, operation("{ open }"), None, "session")  # type: ignore[arg-type]

    assert [error["extensions"] for error in errors] == [{"code": "FORBIDDEN", "scope": ""}]


def test_a_fragment_is_read_once_however_often_it_is_spread() -> None:
    doubling = [
        f"fragment F{now} on Book {{ a: next {{ ...F{now + 1} }} b: next {{ ...F{now + 1} }} }}"
        for now in range(60)
    ]
    query = "{ book { ...F0 } } " + " ".join(doubling) + " fragment F60 on Book { text }"

    found = unmet(query, "read")

    assert [one.path[-1] for one in found] == ["text"]
    assert len(found[0].path) == 62


def test_a_field_is_registered_once() -> None:
    made = table()

    with pytest.raises(ValueError, match=r"Book\.text is registered already"):
        made.register("Book", fields={"text": needs()})
    with pytest.raises(ValueError, match="Book has a default already"):
        made.register("Book", needs())
