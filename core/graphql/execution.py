"""Step 6: executing a document within limits on its answer and its time.

Values are counted where graphql-core completes them, so the limits apply to fields of any type.
"""

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, ClassVar

from django.conf import settings
from django.db import connection
from graphql import (
    DocumentNode,
    ExecutionContext,
    ExecutionResult,
    FieldNode,
    GraphQLError,
    GraphQLLeafType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    execute_sync,
    is_non_null_type,
    located_error,
)
from graphql.pyutils import Path

from core.database.unavailable import DatabaseUnavailable
from core.graphql.problem import GraphQLCode, GraphQLProblem

# The bytes that JSON adds to a field's name and value, to an object, and to an error.
_FIELD_BYTES = 10
_OBJECT_BYTES = 4
_ERROR_BYTES = 250


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits of one answer. Each object and each field of an object is a value.

    Introspection values have a lower limit as well, because anonymous clients may send such
    queries; that of common tools has 5,000 values. The largest allowed answer takes as long as a
    login.
    """

    max_bytes: int = 20 * 1024 * 1024
    max_values: int = 200_000
    max_introspection_values: int = 10_000


class LimitReached(BaseException):
    """Ends the execution. graphql-core would turn an ``Exception`` into a field's error.

    Raised between resolvers, never within one, so no work is left half done.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._problem = GraphQLProblem(GraphQLCode.LIMIT_EXCEEDED, message)
        self.error = located_error(self._problem)

    def locate(self, field_nodes: list[FieldNode], path: Path) -> None:
        """Add the field's path, unless a nested field has added its own."""
        if self.error.path is None:
            self.error = located_error(self._problem, field_nodes, path.as_list())


class BoundedExecution(ExecutionContext):
    """An execution that ends at the first limit it reaches.

    A query must end within ``GRAPHQL_DEADLINE_SECONDS``; its SQL statements are interrupted. A
    mutation is never interrupted: after that time no further mutation begins. Reading the result of
    a mutation has a deadline of its own, as long.
    """

    limits: ClassVar[AnswerLimits] = AnswerLimits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bytes_left = self.limits.max_bytes
        self._values_left = self.limits.max_values
        self._introspection_values_left = self.limits.max_introspection_values
        self._is_mutation = self.operation.operation is OperationType.MUTATION
        self._seconds = settings.GRAPHQL_DEADLINE_SECONDS
        self._deadline = time.monotonic() + self._seconds
        # For the result of the latest mutation.
        self._reading_deadline = math.inf

    def execute_operation(self, operation: OperationDefinitionNode, root_value: Any) -> Any:
        with self._bounded_statements():
            return super().execute_operation(operation, root_value)

    def execute_field(
        self,
        parent_type: GraphQLObjectType,
        source: Any,
        field_nodes: list[FieldNode],
        path: Path,
    ) -> Any:
        try:
            self._check_time(is_root=path.prev is None)
            self._count_value(parent_type, len(str(path.key)) + _FIELD_BYTES)
            return super().execute_field(parent_type, source, field_nodes, path)
        except LimitReached as reached:
            reached.locate(field_nodes, path)
            raise

    def complete_object_value(
        self,
        return_type: GraphQLObjectType,
        field_nodes: list[FieldNode],
        info: GraphQLResolveInfo,
        path: Path,
        result: Any,
    ) -> Any:
        self._count_value(return_type, _OBJECT_BYTES)
        return super().complete_object_value(return_type, field_nodes, info, path, result)

    def complete_leaf_value(self, return_type: GraphQLLeafType, result: Any) -> Any:  # type: ignore[override]
        serialized = ExecutionContext.complete_leaf_value(return_type, result)
        text = serialized if isinstance(serialized, str) else str(serialized)
        # Encoding only lengthens a text, so one that is too long already is not encoded.
        self._count_bytes(len(text))
        self._count_bytes(len(encode_basestring_ascii(text)) - len(text))
        return serialized

    def handle_field_error(
        self, error: GraphQLError, return_type: GraphQLOutputType, path: Path
    ) -> None:
        if self._is_interrupted_statement(error):
            self._stop_for_time()
        if not is_non_null_type(return_type):
            keys = sum(len(str(key)) + 4 for key in path.as_list())
            self._count_bytes(_ERROR_BYTES + len(error.message) + keys)
        super().handle_field_error(error, return_type, path)

    def _bounded_statements(self) -> AbstractContextManager[None]:
        if self._is_mutation:
            return nullcontext()
        return connection.statements_end_by(self._deadline)  # type: ignore[attr-defined]

    def _check_time(self, *, is_root: bool) -> None:
        now = time.monotonic()
        if not self._is_mutation:
            if now >= self._deadline:
                self._stop_for_time()
        elif is_root:
            if now >= self._deadline:
                spent = f"The document has taken {self._seconds} seconds"
                raise LimitReached(f"{spent}; this mutation was not started.")
            self._reading_deadline = math.inf
        elif self._reading_deadline == math.inf:
            self._reading_deadline = now + self._seconds
        elif now >= self._reading_deadline:
            self._stop_for_time()

    def _is_interrupted_statement(self, error: GraphQLError) -> bool:
        return (
            not self._is_mutation
            and isinstance(error.original_error, DatabaseUnavailable)
            and time.monotonic() >= self._deadline
        )

    def _stop_for_time(self) -> None:
        raise LimitReached(
            f"A document may take at most {self._seconds} seconds. Ask for less at a time."
        )

    def _count_value(self, type_: GraphQLObjectType, size_bytes: int) -> None:
        if type_.name.startswith("__"):
            self._introspection_values_left -= 1
            if self._introspection_values_left < 0:
                most = self.limits.max_introspection_values
                raise LimitReached(f"An answer holds at most {most:,} values of introspection.")
        self._values_left -= 1
        if self._values_left < 0:
            most = self.limits.max_values
            raise LimitReached(f"An answer holds at most {most:,} values. Ask for less at a time.")
        self._count_bytes(size_bytes)

    def _count_bytes(self, size_bytes: int) -> None:
        self._bytes_left -= size_bytes
        if self._bytes_left < 0:
            most = self.limits.max_bytes
            raise LimitReached(f"An answer holds at most {most:,} bytes. Ask for less at a time.")


def execute_within_limits(
    execution: type[BoundedExecution],
    schema: GraphQLSchema,
    document: DocumentNode,
    *,
    context: Any,
    variables: Mapping[str, Any],
    operation_name: str | None,
) -> ExecutionResult:
    """Execute the operation; at a limit, the result is one error without data."""
    try:
        return execute_sync(
            schema,
            document,
            context_value=context,
            variable_values=dict(variables),
            operation_name=operation_name,
            execution_context_class=execution,
        )
    except LimitReached as reached:
        return ExecutionResult(None, [reached.error])
