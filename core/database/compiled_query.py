"""Statements whose SQL Django compiles once, for queries that every call makes.

Django takes longer to compile a query with joins than the database takes to answer it. Query sets
are written as usual, with a ``Parameter`` for each value that varies.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import NotSupportedError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet, Value
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

# Converts a value of a field for the database.
Preparation = Callable[[Any, BaseDatabaseWrapper], Any]
# Fields whose values every database takes without conversion.
_UNCONVERTED = (
    models.CharField,
    models.FloatField,
    models.IntegerField,
    models.PositiveIntegerField,
    models.PositiveSmallIntegerField,
    models.TextField,
)


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
        alias = router.db_for_read(self._query_set.model)
        compiled = self._compiled.get(alias)
        if compiled is None:
            compiled = self._compiled[alias] = _Select(self._query_set, alias)
        return compiled.all(values)


class _Select:
    """The query compiled for one database."""

    def __init__(self, query_set: QuerySet[Any, Any], alias: str) -> None:
        self._alias = alias
        # Compiling changes the query, and other threads may compile it too, so this takes a copy.
        compiler: SQLCompiler = query_set.query.clone().get_compiler(alias)
        self._sql, constants_and_parameters = compiler.as_sql()
        self._given = [_given(each, connections[alias]) for each in constants_and_parameters]
        converters = compiler.get_converters([column for column, *_ in compiler.select or ()])
        self._converters = [
            (place, functions, column) for place, (functions, column) in converters.items()
        ]
        is_of_instances = query_set._iterable_class is ModelIterable
        self._result = _instance_of(compiler, alias) if is_of_instances else tuple

    def all(self, values: Mapping[str, Any]) -> list[Any]:
        connection = connections[self._alias]
        given = [take(values, connection) for take in self._given]
        rows = _execute(connection, self._sql, given, has_rows=True)
        return [self._result(self._converted(row, connection)) for row in rows]

    def _converted(self, row: Sequence[Any], connection: BaseDatabaseWrapper) -> list[Any]:
        converted = list(row)
        for place, functions, column in self._converters:
            for function in functions:
                converted[place] = function(converted[place], column, connection)
        return converted


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


def _given(
    each: Any, connection: BaseDatabaseWrapper
) -> Callable[[Mapping[str, Any], BaseDatabaseWrapper], Any]:
    """A function that returns a constant, or a parameter's value in an execution."""
    if not isinstance(each, Parameter):
        return lambda values, connection: each
    prepare = preparation(each.output_field, connection)
    if prepare is None:
        return lambda values, connection: each.value_in(values)
    return lambda values, connection: prepare(each.value_in(values), connection)


class CompiledInsert:
    """The INSERT of whole rows of a model, compiled once per database."""

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._compiled: dict[str, _Insert] = {}

    def execute(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert all rows or none, in one statement.

        A row maps each field's ``attname`` (``script_id`` for a foreign key) to its value; defaults
        are not applied.
        """
        alias = router.db_for_write(self._model)
        compiled = self._compiled.get(alias)
        if compiled is None:
            compiled = self._compiled[alias] = _Insert(self._model, alias)
        compiled.execute(rows)


class _Insert:
    """The statement compiled for one database."""

    def __init__(self, model: type[Model], alias: str) -> None:
        self._alias = alias
        fields = model._meta.local_concrete_fields
        quote = connections[alias].ops.quote_name
        columns = ", ".join(quote(str(field.column)) for field in fields)
        # All names come from the model.
        self._start = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES "  # noqa: S608
        self._row = f"({', '.join('%s' for _ in fields)})"
        self._columns = [
            (field.attname, preparation(field, connections[alias])) for field in fields
        ]

    def execute(self, rows: Sequence[Mapping[str, Any]]) -> None:
        connection = connections[self._alias]
        given = [
            row[name] if prepare is None else prepare(row[name], connection)
            for row in rows
            for name, prepare in self._columns
        ]
        sql = self._start + ", ".join([self._row] * len(rows))
        if len(rows) == 1:
            _execute(connection, sql, given, has_rows=False)
        else:
            # Groups differ in size, so a prepared plan would rarely be used again.
            with connection.cursor() as cursor:
                cursor.execute(sql, given)


def preparation(
    field: models.Field[Any, Any], connection: BaseDatabaseWrapper
) -> Preparation | None:
    """A function that converts a value of the field for the database; ``None`` if none is needed.

    Django looks this up again for each value, which takes longer than the INSERT.
    """
    while isinstance(field, models.ForeignKey):
        field = field.target_field
    if isinstance(field, models.UUIDField):
        return None if connection.features.has_native_uuid_field else _hex_of_uuid
    if type(field) is models.JSONField:
        return _json_text
    if isinstance(field, models.DateTimeField):
        return _datetime_value
    if type(field) in _UNCONVERTED:
        return None
    return lambda value, connection: field.get_db_prep_save(value, connection=connection)


def _hex_of_uuid(value: uuid.UUID | None, connection: BaseDatabaseWrapper) -> str | None:
    return None if value is None else value.hex


def _datetime_value(value: datetime | None, connection: BaseDatabaseWrapper) -> Any:
    """Text in UTC for SQLite; other databases take the datetime."""
    if value is None or connection.vendor != "sqlite":
        return value
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")


def _json_text(value: Any, connection: BaseDatabaseWrapper) -> Any:
    return connection.ops.adapt_json_value(value, None)


def _execute(
    connection: BaseDatabaseWrapper, sql: str, given: Sequence[Any], *, has_rows: bool
) -> list[Any]:
    """Execute a frequent statement and return its rows.

    The server plans it once if it can. This bypasses most of Django's cursor, but still translates
    errors, and uses the full cursor if queries are logged or wrapped.
    """
    connection.ensure_connection()
    if connection.queries_logged or connection.execute_wrappers:
        with connection.cursor() as cursor:
            cursor.execute(sql, given)
            return cursor.fetchall() if has_rows else []
    try:
        return _execute_at_once(connection, sql, given, has_rows=has_rows)
    except NotSupportedError:
        if connection.in_atomic_block:
            raise
        # A migration has changed a column, so the plans of this connection are invalid.
        connection.connection.close()
        connection.close()
        connection.ensure_connection()
        return _execute_at_once(connection, sql, given, has_rows=has_rows)


def _execute_at_once(
    connection: BaseDatabaseWrapper, sql: str, given: Sequence[Any], *, has_rows: bool
) -> list[Any]:
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors:
        cursor = connection.statement_cursor(sql)  # type: ignore[attr-defined]
        cursor.execute(sql, given)
        return cursor.fetchall() if has_rows else []
