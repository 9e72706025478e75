"""The wall between tenants on /admin/graphql.

Whatever a resolver of the Admin GraphQL reads, it reads through here, and what comes out belongs
to the organisation of the caller's API key. A test sees to it that no resolver module reaches for
a manager by itself.
"""

from typing import Any, Protocol, TypeVar

from django.db.models import Model
from graphql import GraphQLResolveInfo

from accounts.members import known_users
from accounts.models import ApiKey, Organisation, User
from core.graphql.resolving import one

Row = TypeVar("Row", bound=Model)


class MachineSession(Protocol):
    """What the door of /admin/graphql lets in."""

    api_key: ApiKey


def caller_key(info: GraphQLResolveInfo) -> ApiKey:
    session: MachineSession = info.context.session
    return session.api_key


def caller_organisation(info: GraphQLResolveInfo) -> Organisation:
    return caller_key(info).organisation


def scoped(info: GraphQLResolveInfo, model: type[Any]) -> Any:
    """The model's own query set of the caller's rows. Deleted ones are not among them."""
    return model.objects.of_organisation(caller_organisation(info))


def find(info: GraphQLResolveInfo, model: type[Row], id: str) -> Row:
    """The row of the caller's organisation, or NOT_FOUND."""
    return one(scoped(info, model), id)


def find_even_deleted(info: GraphQLResolveInfo, model: type[Any], id: str) -> Any:
    """Likewise, for what may be deleted but has left runs."""
    return one(model.objects.ever_of_organisation(caller_organisation(info)), id)


def find_known_user(info: GraphQLResolveInfo, id: str) -> User:
    """A member of the caller's organisation or one that it has invited, or NOT_FOUND."""
    return one(known_users(caller_organisation(info)), id)
