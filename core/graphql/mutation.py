"""Mutations: a field of the schema made from the function that resolves it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from graphene import Field
from graphql import GraphQLResolveInfo

from core.graphql.resolving import domain_errors


def mutation(
    returns: Any,
    description: str,
    /,
    *,
    errors: Callable[[], AbstractContextManager[None]] = domain_errors,
    required: bool = True,
    **arguments: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: the function, which takes ``info`` and the arguments, becomes the field.

    ``errors`` turns refusals of its flow into ``GraphQLProblem``.
    """

    def field_of(resolve: Callable[..., Any]) -> Any:
        def resolver(root: None, info: GraphQLResolveInfo, **given: Any) -> Any:
            with errors():
                return resolve(info, **given)

        return Field(
            returns,
            description=description,
            required=required,
            args=arguments,
            resolver=resolver,
        )

    return field_of
