"""Tenant isolation on /admin/graphql.

Resolvers of the Admin GraphQL read only through these functions, which return rows of the
organisation of the caller's API key. A test checks that no resolver module uses a manager.
"""

from typing import Any, Protocol, TypeVar

from django.db.models import Model
from graphql import GraphQLResolveInfo

from accounts.members import known_users
from accounts.models import ApiKey, Organisation, User
from core.graphql.resolving import one

Row = TypeVar("Row", bound=Model)


class MachineSession(Protocol):
    """A session that /admin/graphql accepts."""

    api_key: ApiKey


def caller_key(info: GraphQLResolveInfo) -> ApiKey:
    session: MachineSession = info.context.session
    return session.api_key


def caller_organisation(info: GraphQLResolveInfo) -> Organisation:
    return caller_key(info).organisation


def scoped(info: GraphQLResolveInfo, model: type[Any]) -> Any:
    """The caller's rows of the model, without deleted ones."""
    return model.objects.of_organisation(caller_organisation(info))


def find(info: GraphQLResolveInfo, model: type[Row], id: str) -> Row:
    """The row of the caller's organisation, or NOT_FOUND."""
    return one(scoped(info, model), id)


def find_even_deleted(info: GraphQLResolveInfo, model: type[Any], id: str) -> Any:
    """The row of the caller's organisation, even if deleted, or NOT_FOUND."""
    return one(model.objects.ever_of_organisation(caller_organisation(info)), id)


def find_known_user(info: GraphQLResolveInfo, id: str) -> User:
    """A member or invited user of the caller's organisation, or NOT_FOUND."""
    return one(known_users(caller_organisation(info)), id)
