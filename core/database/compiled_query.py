"""Statements whose SQL Django compiles once, for queries that every call makes.

Django takes longer to compile a query with joins than the database takes to answer it. Query sets
are written as usual, with a ``Parameter`` for each value that varies.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import compress
from operator import is_not, itemgetter
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, NotSupportedError, connections, models, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet, Value
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

from core.database.ids import KnownId

# Converts a value of a field for one database.
Preparation = Callable[[Any], Any]
# Fields whose values every database takes without conversion.
_UNCONVERTED = (
    models.BinaryField,
    models.BooleanField,
    models.CharField,
    models.FloatField,
    models.IntegerField,
    models.PositiveIntegerField,
    models.PositiveSmallIntegerField,
    models.TextField,
)
# Identical to no value of a column.
_NEVER = object()


class JsonText(NamedTuple):
    """The value of a JSON field that the caller has encoded, to encode it only once."""

    text: str


class Parameter(Value):
    """A placeholder in a query for the value that an execution passes under this name.

    ``place`` is the index in a list; see ``parameters``.
    """

    def __init__(
        self, name: str, output_field: models.Field[Any, Any], place: int | None = None
    ) -> None:
        super().__init__(name, output_field)
        self.place = place

    def value_in(self, values: Mapping[str, Any]) -> Any:
        given = values[self.value]
        return given if self.place is None else given[self.place]

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


def parameters(name: str, output_field: models.Field[Any, Any], count: int) -> list[Parameter]:
    """Placeholders for a list of that length, which an execution passes under this name."""
    return [Parameter(name, output_field, place) for place in range(count)]


class CompiledQuery:
    """A query set compiled once per database, usable by all threads.

    Results are tuples for ``values_list``, otherwise instances; ``select_related``, ``only`` and
    ``annotate`` apply.
    """

    def __init__(self, query_set: QuerySet[Any, Any]) -> None:
        self._query_set = query_set
        self._compiled: dict[str, _Select] = {}

    def first(self, **values: Any) -> Any:
        """The first result, or ``None``. Raises ``KeyError`` for a missing parameter."""
        results = self.all(**values)
        return results[0] if results else None

    def all(self, **values: Any) -> list[Any]:
        """The results. Raises ``KeyError`` for a missing parameter."""
        return self._select().all([values], is_frequent=True)

    def all_of(self, executions: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The results of one or more executions of an unordered query, in one statement.

        Django takes longest to compile a query set, so a union of query sets that differ only in
        values takes many times longer.
        """
        return self._select().all(executions, is_frequent=False)

    def _select(self) -> _Select:
        alias = router.db_for_read(self._query_set.model)
        compiled = self._compiled.get(alias)
        if compiled is None:
            compiled = self._compiled[alias] = _Select(self._query_set, alias)
        return compiled


class _Select:
    """The query compiled for one database."""

    def __init__(self, query_set: QuerySet[Any, Any], alias: str) -> None:
        self._alias = alias
        # Compiling changes the query, and other threads may compile it too, so this takes a copy.
        compiler: SQLCompiler = query_set.query.clone().get_compiler(alias)
        self._sql, constants_and_parameters = compiler.as_sql()
        self._given = [_given(each, connections[alias]) for each in constants_and_parameters]
        self._converters = _converters(compiler, connections[alias])
        is_of_instances = query_set._iterable_class is ModelIterable
        self._result = _instance_of(compiler, alias) if is_of_instances else tuple

    def all(self, executions: Sequence[Mapping[str, Any]], *, is_frequent: bool) -> list[Any]:
        connection = connections[self._alias]
        given = [take(values) for values in executions for take in self._given]
        sql = " UNION ALL ".join([self._sql] * len(executions))
        rows = _execute(connection, sql, given, has_rows=True, is_frequent=is_frequent)
        return [self._result(self._converted(row, connection)) for row in rows]

    def _converted(self, row: Sequence[Any], connection: BaseDatabaseWrapper) -> list[Any]:
        converted = list(row)
        for place, functions, column in self._converters:
            # The converters of all fields here keep NULL, which many columns are.
            if converted[place] is None:
                continue
            for function in functions:
                converted[place] = function(converted[place], column, connection)
        return converted


def _converters(
    compiler: SQLCompiler, connection: BaseDatabaseWrapper
) -> list[tuple[int, Sequence[Callable[[Any, Any, Any], Any]], Any]]:
    """Django's converters of the columns that need any: place, functions, column."""
    uuid_from_text = getattr(connection.ops, "convert_uuidfield_value", None)
    found = compiler.get_converters([column for column, *_ in compiler.select or ()])
    return [
        (place, [_cached_uuid if each == uuid_from_text else each for each in functions], column)
        for place, (functions, column) in found.items()
    ]


def _cached_uuid(value: str | None, expression: Any, connection: Any) -> uuid.UUID | None:
    """Django's converter of SQLite, cached: the same ids repeat in many queries."""
    return None if value is None else _known_id(value)


@lru_cache(maxsize=4096)
def _known_id(text: str) -> uuid.UUID:
    return KnownId(uuid.UUID(text))


def _instance_of(compiler: SQLCompiler, alias: str) -> Callable[[list[Any]], Model]:
    """A function that makes an instance with its related objects from a row, as Django does."""
    select, klass_info = compiler.select, compiler.klass_info
    places = klass_info["select_fields"]
    start, end = places[0], places[-1] + 1
    names = [column.target.attname for column, *_ in select[start:end]]
    populators = get_related_populators(klass_info, select, alias)  # type: ignore[call-arg]
    annotations = (compiler.annotation_col_map or {}).items()

    def instance(row: list[Any]) -> Model:
        made: Model = klass_info["model"].from_db(alias, names, row[start:end])
        for populator in populators:
            populator.populate(row, made)
        for name, place in annotations:
            setattr(made, name, row[place])
        return made

    return instance


def _given(each: Any, connection: BaseDatabaseWrapper) -> Callable[[Mapping[str, Any]], Any]:
    """A function that returns a constant, or a parameter's value in an execution."""
    if not isinstance(each, Parameter):
        return lambda values: each
    prepare = preparation(each.output_field, connection)
    if prepare is None:
        return each.value_in
    return lambda values: prepare(each.value_in(values))


class CompiledInsert:
    """The INSERT of whole rows of a model, compiled once per database."""

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._compiled: dict[str, _Insert] = {}

    def execute(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert all rows or none, in one statement.

        A row maps each field's ``attname`` (``user_id`` for a foreign key) to its value; defaults
        are not applied.
        """
        alias = router.db_for_write(self._model)
        sql, given = self._of(alias).statement(rows)
        # Groups differ in size, so the plan of one would rarely be used again.
        _execute(connections[alias], sql, given, has_rows=False, is_frequent=len(rows) == 1)

    def execute_with(
        self,
        rows: Sequence[Mapping[str, Any]],
        other: CompiledInsert,
        rows_of_other: Sequence[Mapping[str, Any]],
    ) -> None:
        """Insert the rows of both or none: in one statement where the database allows it."""
        alias = router.db_for_write(self._model)
        connection = connections[alias]
        if connection.vendor != "postgresql":
            with transaction.atomic(alias):
                self.execute(rows)
                other.execute(rows_of_other)
            return
        sql, given = self._of(alias).statement(rows)
        sql_of_other, given_of_other = other._of(alias).statement(rows_of_other)
        # Foreign keys between them are checked at the end of the transaction.
        _execute(
            connection,
            f"WITH first AS ({sql}) {sql_of_other}",
            given + given_of_other,
            has_rows=False,
            is_frequent=len(rows) == len(rows_of_other) == 1,
        )

    def _of(self, alias: str) -> _Insert:
        compiled = self._compiled.get(alias)
        if compiled is None:
            compiled = self._compiled[alias] = _Insert(self._model, alias)
        return compiled


class _Insert:
    """The statements compiled for one database.

    On SQLite, columns that are NULL in all rows are left out, because ``sqlite3`` takes four times
    as long to bind NULL as a text. Each set of columns has a statement of its own; few are in use.
    """

    def __init__(self, model: type[Model], alias: str) -> None:
        self._fields = model._meta.local_concrete_fields
        self._alias = alias
        self._leaves_out_null = connections[alias].vendor == "sqlite"
        self._table = connections[alias].ops.quote_name(model._meta.db_table)
        # A column with a default in the database would get that instead of NULL.
        self._left_out = [_NEVER if field.has_db_default() else None for field in self._fields]
        self._values_of = itemgetter(*(field.attname for field in self._fields))
        # A cache for each instance, freed with it.
        self._columns_of = lru_cache(maxsize=128)(self._compiled)

    def statement(self, rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[Any]]:
        """The statement that inserts the rows, with its values."""
        values = [self._values_of(row) for row in rows]
        is_given = self._are_given(values)
        columns = self._columns_of(is_given)
        given: list[Any] = []
        for each in values:
            kept = list(compress(each, is_given))
            for place, prepare in columns.prepared:
                kept[place] = prepare(kept[place])
            given += kept
        return columns.start + _repeated(columns.row, len(rows)), given

    def _are_given(self, rows: Sequence[Sequence[Any]]) -> tuple[bool, ...]:
        if not self._leaves_out_null:
            return (True,) * len(self._fields)
        of_rows = {tuple(map(is_not, values, self._left_out)) for values in rows}
        return of_rows.pop() if len(of_rows) == 1 else tuple(map(any, zip(*of_rows, strict=True)))

    def _compiled(self, is_given: tuple[bool, ...]) -> _InsertedColumns:
        connection = connections[self._alias]
        fields = list(compress(self._fields, is_given))
        names = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
        placeholders = ", ".join(_placeholder(field, connection) for field in fields)
        preparations = [preparation(field, connection) for field in fields]
        return _InsertedColumns(
            # All names come from the model.
            start=f"INSERT INTO {self._table} ({names}) VALUES ",  # noqa: S608
            row=f"({placeholders})",
            prepared=[(place, each) for place, each in enumerate(preparations) if each],
        )


class _InsertedColumns(NamedTuple):
    start: str
    row: str
    prepared: list[tuple[int, Preparation]]
    """The places of values that must be converted."""


@lru_cache(maxsize=256)
def _repeated(row: str, count: int) -> str:
    return ", ".join([row] * count)


class CompiledUpdate:
    """The UPDATE of given columns of a few rows, found by primary key, compiled per database."""

    def __init__(self, model: type[Model], columns: Sequence[str]) -> None:
        self._model = model
        self._names = tuple(columns)
        self._compiled: dict[str, _Update] = {}

    def execute(self, rows: Mapping[Any, Mapping[str, Any]]) -> None:
        """Sets the columns of the row with each key, by ``attname``, to the values beside it.

        In the caller's transaction, and on PostgreSQL in one round trip.
        """
        alias = router.db_for_write(self._model)
        compiled = self._compiled.get(alias)
        if compiled is None:
            compiled = self._compiled[alias] = _Update(self._model, self._names, alias)
        compiled.execute(rows)


class _Update:
    """The statement compiled for one database."""

    def __init__(self, model: type[Model], names: Sequence[str], alias: str) -> None:
        self._alias = alias
        quote = connections[alias].ops.quote_name
        by_name = {field.attname: field for field in model._meta.local_concrete_fields}
        key = model._meta.pk
        if key is None:
            raise ValueError("the model has no primary key")
        connection = connections[alias]
        columns = ", ".join(
            f"{quote(str(field.column))} = {_placeholder(field, connection)}"
            for field in map(by_name.__getitem__, names)
        )
        # All names come from the model.
        self._sql = (
            f"UPDATE {quote(model._meta.db_table)} SET {columns} "  # noqa: S608
            f"WHERE {quote(str(key.column))} = %s"
        )
        self._columns = [(name, preparation(by_name[name], connections[alias])) for name in names]
        self._prepare_key = preparation(key, connections[alias]) or _same

    def execute(self, rows: Mapping[Any, Mapping[str, Any]]) -> None:
        given = [
            [
                *(
                    row[name] if prepare is None else prepare(row[name])
                    for name, prepare in self._columns
                ),
                self._prepare_key(key),
            ]
            for key, row in rows.items()
        ]
        _execute_each(connections[self._alias], self._sql, given)


def _placeholder(field: models.Field[Any, Any], connection: BaseDatabaseWrapper) -> str:
    """As Django's compilers: a field may have one of its own, here the same for all values."""
    of_field = getattr(field, "get_placeholder", None)
    return "%s" if of_field is None else str(of_field(None, None, connection))


def _same(value: Any) -> Any:
    return value


def column_value(model: type[Model], name: str, value: Any) -> Any:
    """The value as the database takes it in that column, for statements that no query set makes."""
    prepare = _preparation_of(model, name, router.db_for_write(model))
    return value if prepare is None else prepare(value)


@lru_cache(maxsize=256)
def _preparation_of(model: type[Model], name: str, alias: str) -> Preparation | None:
    field: Any = model._meta.get_field(name)
    return preparation(field, connections[alias])


def preparation(
    field: models.Field[Any, Any], connection: BaseDatabaseWrapper
) -> Preparation | None:
    """A function that converts a value of the field for this database; ``None`` if none is needed.

    Django looks this up again for each value, which takes longer than the INSERT.
    """
    while isinstance(field, models.ForeignKey):
        field = field.target_field
    if isinstance(field, models.UUIDField):
        return None if connection.features.has_native_uuid_field else _hex_of_uuid
    if type(field) is models.JSONField:
        return _json_text
    if isinstance(field, models.DateTimeField):
        return _utc_text if connection.vendor == "sqlite" else None
    if type(field) in _UNCONVERTED:
        return None
    alias = connection.alias

    def prepare(value: Any) -> Any:
        return field.get_db_prep_save(value, connection=connections[alias])

    # The addresses of clients repeat.
    is_of_clients = isinstance(field, models.GenericIPAddressField)
    return lru_cache(maxsize=1024)(prepare) if is_of_clients else prepare


def _hex_of_uuid(value: uuid.UUID | None) -> str | None:
    return None if value is None else value.hex


def _utc_text(value: datetime | None) -> str | None:
    if value is None:
        return None
    in_utc = value if value.tzinfo is UTC else value.astimezone(UTC)
    return in_utc.isoformat(" ").removesuffix("+00:00")


def _json_text(value: Any) -> str | None:
    """Text for every database: PostgreSQL parses it as the type of its column. None is NULL."""
    if value is None:
        return None
    if type(value) is JsonText:
        return value.text
    return "[]" if value == [] else json.dumps(value)


def rows_of(sql: str) -> list[Any]:
    """The rows of a frequent statement without parameters, which the server plans once if it can.

    For what a query set cannot say. Values are as the database's driver gives them.
    """
    return _execute(connections[DEFAULT_DB_ALIAS], sql, [], has_rows=True)


def _execute(
    connection: BaseDatabaseWrapper,
    sql: str,
    given: Sequence[Any],
    *,
    has_rows: bool,
    is_frequent: bool = True,
) -> list[Any]:
    """Execute a statement and return its rows.

    The server plans a frequent one once if it can. This bypasses Django's cursor, but still
    translates errors, and uses the full cursor if queries are logged or wrapped.
    """
    if connection.connection is None:
        connection.ensure_connection()
    if connection.queries_logged or connection.execute_wrappers:
        with connection.cursor() as cursor:
            cursor.execute(sql, given)
            return cursor.fetchall() if has_rows else []
    try:
        return _execute_at_once(connection, sql, given, has_rows, is_frequent)
    except NotSupportedError:
        if connection.in_atomic_block:
            raise
        # A migration has changed a column, so the plans of this connection are invalid.
        connection.connection.close()
        connection.close()
        connection.ensure_connection()
        return _execute_at_once(connection, sql, given, has_rows, is_frequent)


def _execute_each(
    connection: BaseDatabaseWrapper, sql: str, given: Sequence[Sequence[Any]]
) -> None:
    """Execute a frequent statement without rows once for each of these lists of values."""
    is_plain = not (connection.queries_logged or connection.execute_wrappers)
    if len(given) > 1 and is_plain and connection.vendor == "postgresql":
        connection.ensure_connection()
        connection.validate_no_broken_transaction()
        with connection.wrap_database_errors:
            connection.execute_in_pipeline(sql, given)  # type: ignore[attr-defined]
        return
    for each in given:
        _execute(connection, sql, each, has_rows=False)


def _execute_at_once(
    connection: BaseDatabaseWrapper,
    sql: str,
    given: Sequence[Any],
    has_rows: bool,
    is_frequent: bool,
) -> list[Any]:
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors:
        cursor = connection.execute_statement(  # type: ignore[attr-defined]
            sql, given, is_frequent=is_frequent
        )
        return cursor.fetchall() if has_rows else []
