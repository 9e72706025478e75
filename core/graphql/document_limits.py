"""Step 3: limits on the size and depth of a document, counted through its fragments."""

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
    """Limits of one document. Root fields are at depth 1; ``None`` means no limit.

    Selections below ``__schema`` or ``__type`` have a depth limit of their own, which admits the
    introspection query of common tools with its ``ofType`` chain of 9. Aliases and fields count
    each time their fragment is spread, in all operations of the document.
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
    """The size of a selection set with its fragments expanded.

    ``root_fields`` counts its top-level fields except introspection fields.
    """

    depth: int = 0
    introspection_depth: int = 0
    aliases: int = 0
    fields: int = 0
    root_fields: int = 0


def limit_violations(document: DocumentNode, limits: DocumentLimits) -> list[GraphQLError]:
    """Return an error for each limit that the document exceeds.

    The document must be valid: its fragments exist and have no cycle (``graphlib.CycleError``
    otherwise). Each fragment is weighed once, after the fragments it spreads, so the work is linear
    in the document even where the counts are exponential.
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
    """Sort the fragments, each after those it spreads. Raises ``graphlib.CycleError``."""
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
                # Here the fragment is on an introspection type.
                below = introspection_level - 1 + spread.depth
                introspection_depth = max(introspection_depth, below)
            else:
                depth = max(depth, level - 1 + spread.depth)
                introspection_depth = max(introspection_depth, spread.introspection_depth)
                root_fields += spread.root_fields if level == 1 else 0
    return Weight(depth, introspection_depth, aliases, fields, root_fields)


def _walk(selection_set: SelectionSetNode) -> Iterator[tuple[SelectionNode, int, int]]:
    """Yield every selection, without expanding fragments, with its level and introspection level.

    From an introspection field down, the introspection level counts from 1 and the level is 0;
    elsewhere the introspection level is 0.
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
