"""Steps 3 and 4: from a document's text to the operation to execute, and its variables.

Errors of variables name variable and type, but not the value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLEnumType,
    GraphQLError,
    GraphQLFormattedError,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLNamedType,
    GraphQLSchema,
    GraphQLSyntaxError,
    GraphQLType,
    InlineFragmentNode,
    ObjectValueNode,
    OperationDefinitionNode,
    ValueNode,
    VariableDefinitionNode,
    coerce_input_value,
    get_named_type,
    is_input_object_type,
    is_non_null_type,
    parse,
    print_ast,
    specified_rules,
    type_from_ast,
    validate,
)
from graphql.validation import (
    ASTValidationRule,
    MaxIntrospectionDepthRule,
    ValuesOfCorrectTypeRule,
)
from graphql.validation.rules import overlapping_fields_can_be_merged

from core.graphql.document_limits import DocumentLimits, limit_violations
from core.graphql.problem import (
    GraphQLCode,
    GraphQLProblem,
    bad_input,
    limit_error,
    problem_error,
    syntax_error,
    validation_error,
)
from core.graphql.reply import RefusedRequest, invalid_request_reply

# The cache of valid documents takes a dozen MiB at most: a few hundred bytes per character.
MAX_CACHED_CHARACTERS = 1_000
MAX_CACHED_DOCUMENTS = 64
# graphql-core lists this limit with the specification's rules.
LIMIT_RULES: Sequence[type[ASTValidationRule]] = (MaxIntrospectionDepthRule,)
# Also bounds the comparisons of wrong names with those of the schema, for suggestions.
MAX_ERRORS = 20


class ValuesOfCorrectTypeWithoutValuesRule(ValuesOfCorrectTypeRule):
    """Names the argument, its type and an enum's values, but not the given value.

    The value may be a PIN sent as a number.
    """

    def report_error(self, error: GraphQLError) -> None:
        node = error.nodes[0] if error.nodes else None
        if isinstance(node, ValueNode) and not self._is_about_input_fields(node):
            error = GraphQLError(self._message(), node)
        super().report_error(error)

    def _is_about_input_fields(self, node: ValueNode) -> bool:
        """Whether the value is an input object as expected, and the error is about its fields."""
        expected = get_named_type(self.context.get_input_type())
        return isinstance(node, ObjectValueNode) and is_input_object_type(expected)

    def _message(self) -> str:
        expected = f"Expected value of type '{self.context.get_input_type()}'"
        argument = self._argument_name()
        allowed = allowed_values(self.context.get_input_type())
        place = f" for argument '{argument}'" if argument else ""
        return f"{expected}{place}.{allowed}"

    def _argument_name(self) -> str | None:
        argument = self.context.get_argument()
        owner = self.context.get_directive() or self.context.get_field_def()
        if argument is None or owner is None:
            return None
        return next((name for name, known in owner.args.items() if known is argument), None)


def allowed_values(type_: GraphQLType | None) -> str:
    """A sentence with the values of an enum, after a space; empty for other types."""
    named = get_named_type(type_)
    if not isinstance(named, GraphQLEnumType):
        return ""
    return f" Allowed: {', '.join(named.values)}."


# Budget for comparing each pair of fields with the same response name, which is quadratic work
# and needs no login. graphql-core's budget of 500,000 comparisons takes one to two seconds; common
# documents need a few hundred.
overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = 50_000


SPECIFIED_RULES: Sequence[type[ASTValidationRule]] = tuple(
    ValuesOfCorrectTypeWithoutValuesRule if rule is ValuesOfCorrectTypeRule else rule
    for rule in specified_rules
    if rule not in LIMIT_RULES
)


def parse_and_validate(schema: GraphQLSchema, query: str, limits: DocumentLimits) -> DocumentNode:
    """Parse a document, validate it by the specification's rules, then apply the limits.

    Short documents are cached, because clients send the same few repeatedly and validating takes
    longer than executing them. Documents with strings are not, because these may be secrets.

    Raises ``RefusedRequest``.
    """
    if len(query) <= MAX_CACHED_CHARACTERS and '"' not in query:
        return _cached(schema, query, limits)
    return _validated(schema, query, limits)


@lru_cache(maxsize=MAX_CACHED_DOCUMENTS)
def _cached(schema: GraphQLSchema, query: str, limits: DocumentLimits) -> DocumentNode:
    return _validated(schema, query, limits)


def _validated(schema: GraphQLSchema, query: str, limits: DocumentLimits) -> DocumentNode:
    """Apply the limits last: only the specification's rules are safe on cyclic fragments."""
    try:
        document = parse(
            query, max_lexical_tokens=limits.max_tokens, max_comments=limits.max_comments
        )
    except GraphQLSyntaxError as error:
        raise RefusedRequest(invalid_request_reply([syntax_error(error)])) from None
    if errors := validate(schema, document, SPECIFIED_RULES, MAX_ERRORS):
        raise RefusedRequest(invalid_request_reply([validation_error(error) for error in errors]))
    violations = limit_violations(document, limits)
    violations += validate(schema, document, LIMIT_RULES)
    if violations:
        raise RefusedRequest(invalid_request_reply([limit_error(error) for error in violations]))
    return document


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation to execute, with its document."""

    document: DocumentNode
    node: OperationDefinitionNode

    def root_field_names(self) -> set[str]:
        """The names of all root fields, also within fragments; directives are ignored."""
        fragments = {
            definition.name.value: definition
            for definition in self.document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        names: set[str] = set()
        seen: set[str] = set()
        pending = [self.node.selection_set]
        while pending:
            for selection in pending.pop().selections:
                if isinstance(selection, FieldNode):
                    names.add(selection.name.value)
                elif isinstance(selection, InlineFragmentNode):
                    pending.append(selection.selection_set)
                elif isinstance(selection, FragmentSpreadNode):
                    fragment = selection.name.value
                    if fragment not in seen:
                        seen.add(fragment)
                        pending.append(fragments[fragment].selection_set)
        return names


def select_operation(
    schema: GraphQLSchema, document: DocumentNode, operation_name: str | None
) -> Operation:
    """Return the named operation, or the only one. Raises ``RefusedRequest``."""
    operations = [
        definition
        for definition in document.definitions
        if isinstance(definition, OperationDefinitionNode)
        and (operation_name is None or _has_name(definition, operation_name))
    ]
    if not operations:
        raise _refused_choice("The document has no operation of this name.")
    if len(operations) > 1:
        raise _refused_choice("The document has several operations: name one.")
    node = operations[0]
    if schema.get_root_type(node.operation) is None:
        problem = GraphQLProblem(
            GraphQLCode.GRAPHQL_VALIDATION_FAILED,
            f"This schema has no {node.operation.value} type.",
        )
        raise RefusedRequest(invalid_request_reply([problem_error(problem)]))
    return Operation(document, node)


def _has_name(operation: OperationDefinitionNode, name: str) -> bool:
    return operation.name is not None and operation.name.value == name


def _refused_choice(message: str) -> RefusedRequest:
    return RefusedRequest(invalid_request_reply([bad_input(message, "operationName")]))


def variable_errors(
    schema: GraphQLSchema, operation: OperationDefinitionNode, variables: dict[str, Any]
) -> list[GraphQLFormattedError]:
    """Return the first ``MAX_ERRORS`` errors of the values; an empty list if they are valid.

    This is the specification's CoerceVariableValues for a valid operation. graphql-core also does
    it during execution, but its errors contain the values.
    """
    errors: list[GraphQLFormattedError] = []
    for definition in operation.variable_definitions:
        errors += _errors_of(schema, definition, variables)
    return errors[:MAX_ERRORS]


def _errors_of(
    schema: GraphQLSchema, definition: VariableDefinitionNode, variables: dict[str, Any]
) -> list[GraphQLFormattedError]:
    name = definition.variable.name.value
    written_type = print_ast(definition.type)
    type_: GraphQLInputType = type_from_ast(schema, definition.type)  # type: ignore[assignment]
    if name not in variables:
        if is_non_null_type(type_) and definition.default_value is None:
            return [bad_input(f"Variable '${name}' of type '{written_type}' is missing.", name)]
        return []

    wrong: list[tuple[str, str]] = []

    def note(path: list[str | int], _value: Any, _error: GraphQLError) -> None:
        if len(wrong) >= MAX_ERRORS:
            raise _EnoughErrors
        wrong.append((_printed(name, path), allowed_values(_type_at(type_, path))))

    try:
        coerce_input_value(variables[name], type_, note)
    except _EnoughErrors:
        pass
    except RecursionError:
        wrong.append((name, ""))
    message = f"Variable '${name}' of type '{written_type}' got an invalid value"
    return [bad_input(f"{message} at '{path}'.{allowed}", path) for path, allowed in wrong]


def _type_at(type_: GraphQLInputType, path: list[str | int]) -> GraphQLType:
    """The named type of the input at the path, whose numbers are places in lists."""
    named: GraphQLNamedType = get_named_type(type_)
    for key in path:
        if isinstance(key, str) and isinstance(named, GraphQLInputObjectType):
            named = get_named_type(named.fields[key].type)
    return named


class _EnoughErrors(Exception):
    pass


def _printed(name: str, path: list[str | int]) -> str:
    return name + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
