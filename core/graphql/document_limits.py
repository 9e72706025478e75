"""How much one document may ask for, counted through its fragments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
)

INTROSPECTION_FIELDS = frozenset({"__schema", "__type"})


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Root fields are at depth 1. ``None`` means no limit.

    What stands below ``__schema`` or ``__type`` has a depth of its own, wide enough for the
    introspection query of the common tools, whose ``ofType`` chain alone is 9 deep. Aliases and
    fields count as often as their fragments are spread, in all operations of the document.
    """

    max_depth: int = 12
    max_introspection_depth: int = 20
    max_aliases: int = 30
    max_tokens: int = 4_000
    max_comments: int = 4_000
    max_fields: int = 4_000
    max_root_mutation_fields: int | None = None


@dataclass(frozen=True, slots=True)
class Weight:
    """What a selection set comes to with its fragments spread out.

    ``root_fields`` are those at its own top level, without ``__typename`` and the like.
    """

    depth: int = 0
    introspection_depth: int = 0
    aliases: int = 0
    fields: int = 0
    root_fields: int = 0


def limit_violations(document: DocumentNode, limits: DocumentLimits) -> list[GraphQLError]:
    """An error for each limit the document is over.

    The document has passed the specification's own rules: its fragments exist and form no cycle
    (``graphlib.CycleError`` otherwise). Every fragment is weighed once, after those it spreads,
    so that the work is linear in the document while the counts may be exponential.
    """
    weights = _fragment_weights(document)
    operations = [
        (definition.operation, _weigh(definition.selection_set, weights))
        for definition in document.definitions
        if isinstance(definition, OperationDefinitionNode)
    ]
    mutation_fields = sum(
        weight.root_fields
        for operation, weight in operations
        if operation is OperationType.MUTATION
    )
    all_weights = [weight for _, weight in operations]
    checks = [
        (
            max(weight.depth for weight in all_weights),
            limits.max_depth,
            "The document may be at most {} levels deep.",
        ),
        (
            max(weight.introspection_depth for weight in all_weights),
            limits.max_introspection_depth,
            "Introspection may be at most {} levels deep.",
        ),
        (
            sum(weight.aliases for weight in all_weights),
            limits.max_aliases,
            "The document may have at most {} aliases.",
        ),
        (
            sum(weight.fields for weight in all_weights),
            limits.max_fields,
            "The document may select at most {} fields.",
        ),
        (
            mutation_fields,
            limits.max_root_mutation_fields,
            "The document may call at most {} mutation.",
        ),
    ]
    return [
        GraphQLError(message.format(limit), document)
        for count, limit, message in checks
        if limit is not None and count > limit
    ]


def fragments_in_order(document: DocumentNode) -> list[FragmentDefinitionNode]:
    """The fragments, each after those it spreads. Raises ``graphlib.CycleError``."""
    fragments = {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    spreads = {name: set(_spreads(node.selection_set)) for name, node in fragments.items()}
    return [fragments[name] for name in TopologicalSorter(spreads).static_order()]


def _fragment_weights(document: DocumentNode) -> dict[str, Weight]:
    weights: dict[str, Weight] = {}
    for fragment in fragments_in_order(document):
        weights[fragment.name.value] = _weigh(fragment.selection_set, weights)
    return weights


def _spreads(selection_set: SelectionSetNode) -> Iterator[str]:
    for selection, _, _ in _walk(selection_set):
        if isinstance(selection, FragmentSpreadNode):
            yield selection.name.value


def _weigh(selection_set: SelectionSetNode, fragments: Mapping[str, Weight]) -> Weight:
    depth = introspection_depth = aliases = fields = root_fields = 0
    for selection, level, introspection_level in _walk(selection_set):
        if isinstance(selection, FieldNode):
            fields += 1
            aliases += selection.alias is not None
            depth = max(depth, level)
            introspection_depth = max(introspection_depth, introspection_level)
            is_root = level == 1 and not selection.name.value.startswith("__")
            root_fields += is_root
        elif isinstance(selection, FragmentSpreadNode):
            spread = fragments[selection.name.value]
            fields += spread.fields
            aliases += spread.aliases
            if introspection_level:
                # The fragment is on a type of the introspection schema.
                below = introspection_level - 1 + spread.depth
                introspection_depth = max(introspection_depth, below)
            else:
                depth = max(depth, level - 1 + spread.depth)
                introspection_depth = max(introspection_depth, spread.introspection_depth)
                root_fields += spread.root_fields if level == 1 else 0
    return Weight(depth, introspection_depth, aliases, fields, root_fields)


def _walk(selection_set: SelectionSetNode) -> Iterator[tuple[SelectionNode, int, int]]:
    """Every selection that is written here, with its level and its level of introspection.

    Below an introspection field, itself included, the latter counts from 1 and the former
    stays at 0; outside the latter is 0.
    """
    pending = [(selection, 1, 0) for selection in selection_set.selections]
    while pending:
        selection, level, introspection_level = pending.pop()
        if isinstance(selection, FieldNode):
            if not introspection_level and selection.name.value in INTROSPECTION_FIELDS:
                level, introspection_level = 0, 1
            yield selection, level, introspection_level
            below = (level + 1, 0) if level else (0, introspection_level + 1)
            inner = selection.selection_set
        else:
            yield selection, level, introspection_level
            below = (level, introspection_level)
            inner = selection.selection_set if isinstance(selection, InlineFragmentNode) else None
        if inner:
            pending.extend((nested, *below) for nested in inner.selections)
