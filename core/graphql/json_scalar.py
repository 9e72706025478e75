"""The scalar ``JSON``: any JSON value, taken and given as it is."""

from typing import Any

import graphene
from graphql import ValueNode, value_from_ast_untyped


class JSON(graphene.Scalar):
    """Any JSON value: an object, a list, a text, a number, true, false or null."""

    @staticmethod
    def serialize(value: Any) -> Any:
        return value

    @staticmethod
    def parse_value(value: Any) -> Any:
        return value

    @staticmethod
    def parse_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
        """The value of a literal in a document, whose depth and tokens are limited."""
        return value_from_ast_untyped(node, variables)
