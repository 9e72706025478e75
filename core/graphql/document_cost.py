"""Step 5: the cost of an operation, estimated from its text, its variables and the schema.

A point is about 10 µs of work. docs/api.md tells clients how points are counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from graphql import (
    FieldNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLFormattedError,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    SelectionSetNode,
    get_named_type,
    get_nullable_type,
    is_list_type,
    value_from_ast,
)
from graphql.execution.values import get_variable_values

from core.graphql.connection import DEFAULT_PAGE, LARGEST_PAGE
from core.graphql.document import Operation
from core.graphql.document_limits import fragments_in_order
from core.graphql.problem import limit_error

FIELD = 1
ROOT_FIELD = 50
# Extra points of fields that take a database query or are large.
EXTRA_POINTS: dict[str, int] = {"totalCount": 500, "totalCountIsCapped": 500}
# Assumed lengths of lists. Pages are counted by their argument "first" instead.
LIST_SIZE = 20
LIST_SIZES: dict[str, int] = {}
ROWS_OF_PAGE = "nodes"


def register_prices(
    extra_points: Mapping[str, int], list_sizes: Mapping[str, int] | None = None
) -> None:
    """Registers extra points and assumed lengths by the names of an app's fields, at start."""
    EXTRA_POINTS.update(extra_points)
    LIST_SIZES.update(list_sizes or {})


@dataclass(frozen=True, slots=True)
class Cost:
    """The points of a selection set.

    ``points_per_row`` is for pages only: the points below ``nodes``, to be multiplied by the number
    of rows that ``first`` requests.
    """

    points: int = 0
    points_per_row: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.points + other.points, self.points_per_row + other.points_per_row)


def cost_of(schema: GraphQLSchema, operation: Operation, variables: Mapping[str, Any]) -> int:
    """Return the points of the operation.

    The document must be within its other limits, and the variables valid. Each fragment is counted
    once, so the work is linear in the document even where the cost is exponential. ``@skip`` and
    ``@include`` are ignored. Fields below ``__schema`` and ``__type`` are free:
    ``AnswerLimits.max_introspection_values`` limits them.
    """
    definitions = list(operation.node.variable_definitions)
    values = get_variable_values(schema, definitions, dict(variables))
    counter = _Counter(schema, values if isinstance(values, dict) else {})
    for fragment in fragments_in_order(operation.document):
        on_type = schema.get_type(fragment.type_condition.name.value)
        cost = counter.of_selections(fragment.selection_set, on_type)
        counter.fragments[fragment.name.value] = cost
    root = schema.get_root_type(operation.node.operation)
    return counter.of_selections(operation.node.selection_set, root).points


class _Counter:
    """Adds up the costs of selections; ``fragments`` holds those of fragments counted so far."""

    def __init__(self, schema: GraphQLSchema, variables: dict[str, Any]) -> None:
        self.fragments: dict[str, Cost] = {}
        self._schema = schema
        self._variables = variables

    def of_selections(self, selections: SelectionSetNode, on: GraphQLNamedType | None) -> Cost:
        total = Cost()
        for selection, parent in self._flat(selections, on):
            if isinstance(selection, FragmentSpreadNode):
                total += self.fragments[selection.name.value]
            else:
                total += self._of_field(selection, parent)
        return total

    def _flat(
        self, selections: SelectionSetNode, on: GraphQLNamedType | None
    ) -> Iterator[tuple[FieldNode | FragmentSpreadNode, GraphQLNamedType | None]]:
        """Yield fields and spreads, also from inline fragments, with their parent type."""
        pending = [(selection, on) for selection in selections.selections]
        while pending:
            selection, parent = pending.pop()
            if isinstance(selection, InlineFragmentNode):
                condition = selection.type_condition
                inner = self._schema.get_type(condition.name.value) if condition else parent
                pending += [(nested, inner) for nested in selection.selection_set.selections]
            elif isinstance(selection, FieldNode | FragmentSpreadNode):
                yield selection, parent

    def _of_field(self, node: FieldNode, parent: GraphQLNamedType | None) -> Cost:
        name = node.name.value
        field = parent.fields.get(name) if isinstance(parent, GraphQLObjectType) else None
        if field is None:  # __typename, __schema, __type
            return Cost(FIELD)
        is_root = parent in (self._schema.query_type, self._schema.mutation_type)
        own = EXTRA_POINTS.get(name, 0) + (ROOT_FIELD if is_root else FIELD)
        if node.selection_set is None:
            return Cost(own)
        inner = self.of_selections(node.selection_set, get_named_type(field.type))
        is_list = is_list_type(get_nullable_type(field.type))
        if "first" in field.args:
            rows = self._rows(node, field)
            if is_list:
                return Cost(own + rows * inner.points)
            return Cost(own + inner.points + rows * inner.points_per_row)
        if name == ROWS_OF_PAGE:
            return Cost(own, inner.points)
        return Cost(own + inner.points * (LIST_SIZES.get(name, LIST_SIZE) if is_list else 1))

    def _rows(self, node: FieldNode, field: GraphQLField) -> int:
        """The value of ``first``, within its range: its resolver refuses other values."""
        given = [argument for argument in node.arguments if argument.name.value == "first"]
        if not given:
            default = field.args["first"].default_value
            return default if isinstance(default, int) else DEFAULT_PAGE
        rows = value_from_ast(given[0].value, field.args["first"].type, self._variables)
        return min(max(rows, 1), LARGEST_PAGE) if isinstance(rows, int) else DEFAULT_PAGE


def cost_error(operation: Operation, cost: int) -> GraphQLFormattedError | None:
    """The error of an operation that costs more than ``GRAPHQL_MAX_COST``."""
    most = settings.GRAPHQL_MAX_COST
    if cost <= most:
        return None
    message = f"The document costs {cost:,} points, of at most {most:,}. Ask for less at a time."
    return limit_error(GraphQLError(message, operation.node))
