"""Step 4: what each field of a document needs, checked before any of it runs.

An endpoint has one table. A field that the table does not name is refused to everybody.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.http import HttpRequest
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLAbstractType,
    GraphQLError,
    GraphQLFormattedError,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    InlineFragmentNode,
    SelectionNode,
    SelectionSetNode,
    get_named_type,
)

from core.graphql.document import Operation
from core.graphql.problem import forbidden_field

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Needs:
    """The names that a field needs, all of them; more where an argument is given."""

    names: Names
    by_argument: Mapping[str, Names] = field(default_factory=dict)


def needs(*names: str, **by_argument: str) -> Needs:
    """The needs of a field; ``by_argument`` maps arguments, by their GraphQL names, to one name."""
    return Needs(
        frozenset(names), {argument: frozenset({name}) for argument, name in by_argument.items()}
    )


class FieldNeeds:
    """The table of one schema: a default of a type, and fields that differ from it."""

    def __init__(self) -> None:
        self._defaults: dict[str, Needs] = {}
        self._fields: dict[tuple[str, str], Needs] = {}
        self._abstract: dict[tuple[GraphQLAbstractType, str], Needs | None] = {}

    def register(
        self,
        type_name: str,
        default: Needs | None = None,
        fields: Mapping[str, Needs] | None = None,
    ) -> None:
        """Registers a type, or more fields of one, by their GraphQL names, at start."""
        if default is not None:
            if type_name in self._defaults:
                raise ValueError(f"{type_name} has a default already")
            self._defaults[type_name] = default
        for name, needed in (fields or {}).items():
            if (type_name, name) in self._fields:
                raise ValueError(f"{type_name}.{name} is registered already")
            self._fields[type_name, name] = needed

    def of(self, type_name: str, field_name: str) -> Needs | None:
        """What the field needs; ``None`` if nobody has said it."""
        return self._fields.get((type_name, field_name)) or self._defaults.get(type_name)

    def of_abstract(
        self, schema: GraphQLSchema, on: GraphQLAbstractType, field_name: str
    ) -> Needs | None:
        """What a field of an interface needs: as much as on all of its types together."""
        key = (on, field_name)
        if key not in self._abstract:
            found = [self.of(each.name, field_name) for each in schema.get_possible_types(on)]
            self._abstract[key] = _together(found)
        return self._abstract[key]

    def named(self) -> Iterator[tuple[str, str | None, Needs]]:
        """Every entry: the type, the field or ``None`` for the default, and the needs."""
        for type_name, needed in self._defaults.items():
            yield type_name, None, needed
        for (type_name, field_name), needed in self._fields.items():
            yield type_name, field_name, needed


def _together(found: list[Needs | None]) -> Needs | None:
    if not found:
        return None
    names: Names = frozenset()
    by_argument: dict[str, Names] = {}
    for needed in found:
        if needed is None:
            return None
        names |= needed.names
        for argument, more in needed.by_argument.items():
            by_argument[argument] = by_argument.get(argument, frozenset()) | more
    return Needs(names, by_argument)


class Unmet(NamedTuple):
    """A field that may not be asked for: where, and the names that are missing.

    ``names`` is empty for a field that the table does not name.
    """

    node: FieldNode
    path: tuple[str, ...]
    names: Names


def unmet_needs(
    schema: GraphQLSchema, table: FieldNeeds, operation: Operation, held: Names
) -> list[Unmet]:
    """The fields of the operation that need more than is held, in the order of the document.

    The document must be valid. Each fragment is read once, where it is spread first: what a field
    needs depends on its type only. So the work is linear in the document. ``@skip`` and
    ``@include`` are ignored: what is skipped counts as asked for. Introspection is free.
    """
    reader = _Reader(schema, table, operation, held)
    reader.read()
    return list(reader.unmet.values())


class _Reader:
    def __init__(
        self, schema: GraphQLSchema, table: FieldNeeds, operation: Operation, held: Names
    ) -> None:
        self.unmet: dict[tuple[str, ...], Unmet] = {}
        self._schema, self._table, self._held = schema, table, held
        self._operation = operation
        self._fragments: dict[str, FragmentDefinitionNode] | None = None

    def read(self) -> None:
        node = self._operation.node
        pending = [
            *_below(node.selection_set, self._schema.get_root_type(node.operation), ()),
        ]
        while pending:
            selection, on, path = pending.pop()
            if isinstance(selection, FieldNode):
                pending += self._read_field(selection, on, path)
            elif isinstance(selection, InlineFragmentNode):
                condition = selection.type_condition
                inner = self._schema.get_type(condition.name.value) if condition else on
                pending += _below(selection.selection_set, inner, path)
            elif isinstance(selection, FragmentSpreadNode):
                fragment = self._first_time(selection.name.value)
                if fragment is not None:
                    inner = self._schema.get_type(fragment.type_condition.name.value)
                    pending += _below(fragment.selection_set, inner, path)

    def _first_time(self, name: str) -> FragmentDefinitionNode | None:
        if self._fragments is None:
            self._fragments = {
                definition.name.value: definition
                for definition in self._operation.document.definitions
                if isinstance(definition, FragmentDefinitionNode)
            }
        return self._fragments.pop(name, None)

    def _read_field(
        self, node: FieldNode, on: GraphQLNamedType | None, path: tuple[str, ...]
    ) -> "Iterable[_Place]":
        name = node.name.value
        if name.startswith("__"):
            return ()
        if isinstance(on, GraphQLObjectType):
            needed = self._table.of(on.name, name)
        else:
            needed = self._of_abstract(on, name)
        inner = node.selection_set
        lacks = needed is None or not needed.names <= self._held or bool(needed.by_argument)
        if inner is None and not lacks:
            return ()
        here = (*path, node.alias.value if node.alias else name)
        if lacks:
            self._check(node, here, needed)
        if inner is None or not isinstance(on, GraphQLObjectType | GraphQLInterfaceType):
            return ()
        return _below(inner, get_named_type(on.fields[name].type), here)

    def _of_abstract(self, on: GraphQLNamedType | None, name: str) -> Needs | None:
        if not isinstance(on, GraphQLInterfaceType | GraphQLUnionType):
            return None
        return self._table.of_abstract(self._schema, on, name)

    def _check(self, node: FieldNode, path: tuple[str, ...], needed: Needs | None) -> None:
        if needed is None:
            self.unmet.setdefault(path, Unmet(node, path, frozenset()))
            return
        names = needed.names
        if needed.by_argument:
            for argument in node.arguments:
                names |= needed.by_argument.get(argument.name.value, frozenset())
        if missing := names - self._held:
            before = self.unmet.get(path)
            all_missing = missing if before is None else missing | before.names
            self.unmet[path] = Unmet(node, path, all_missing)


_Place = tuple[SelectionNode, GraphQLNamedType | None, tuple[str, ...]]


def _below(
    selections: SelectionSetNode, on: GraphQLNamedType | None, path: tuple[str, ...]
) -> list[_Place]:
    # The last is read first, so that errors come in the order of the document.
    return [(selection, on, path) for selection in reversed(selections.selections)]


def _nothing_held(session: Any) -> Names:
    return frozenset()


def _not_recorded(request: HttpRequest, session: Any, names: Sequence[str]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """An endpoint's table, and what its sessions hold; by default every field is refused.

    ``held(session)`` returns the names; ``session`` is ``None`` where none was needed. ``order``
    are all names, as errors list them. ``refused(request, session, names)`` is called once for a
    document that was refused for want of these.
    """

    table: FieldNeeds = field(default_factory=FieldNeeds)
    held: Callable[[Any], Names] = _nothing_held
    order: Sequence[str] = ()
    refused: Callable[[HttpRequest, Any, Sequence[str]], None] = _not_recorded

    def errors(
        self, schema: GraphQLSchema, operation: Operation, request: HttpRequest, session: Any
    ) -> list[GraphQLFormattedError]:
        """One ``FORBIDDEN`` for each field whose needs are not held; then nothing may run."""
        unmet = unmet_needs(schema, self.table, operation, self.held(session))
        if unmet:
            missing = frozenset[str]().union(*(each.names for each in unmet))
            self.refused(request, session, self._in_order(missing))
        return [self._error(each) for each in unmet]

    def _error(self, unmet: Unmet) -> GraphQLFormattedError:
        names = " ".join(self._in_order(unmet.names))
        message = f"This needs the scope {names}." if names else "This field is closed."
        return forbidden_field(GraphQLError(message, unmet.node, path=list(unmet.path)), names)

    def _in_order(self, names: Names) -> list[str]:
        return [name for name in self.order if name in names]
