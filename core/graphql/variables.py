"""Step 4: checking variables, with errors that name variable and type but not the value."""

from typing import Any

from graphql import (
    GraphQLError,
    GraphQLFormattedError,
    GraphQLInputType,
    GraphQLSchema,
    OperationDefinitionNode,
    VariableDefinitionNode,
    coerce_input_value,
    is_non_null_type,
    print_ast,
    type_from_ast,
)

from core.graphql.errors import bad_input

MAX_ERRORS = 20


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

    paths: list[str] = []

    def note(path: list[str | int], _value: Any, _error: GraphQLError) -> None:
        if len(paths) >= MAX_ERRORS:
            raise _EnoughErrors
        paths.append(_printed(name, path))

    try:
        coerce_input_value(variables[name], type_, note)
    except _EnoughErrors:
        pass
    except RecursionError:
        paths.append(name)
    message = f"Variable '${name}' of type '{written_type}' got an invalid value"
    return [bad_input(f"{message} at '{path}'.", path) for path in paths]


class _EnoughErrors(Exception):
    pass


def _printed(name: str, path: list[str | int]) -> str:
    return name + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
