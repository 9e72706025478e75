"""Tenant isolation on /admin/graphql.

Resolvers of the Admin GraphQL read only through these functions, which return rows of the
organisation of the caller's API key, and its members and invited users in one list. A test checks
that no resolver module uses a manager.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from django.db.models import Model, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce
from graphql import GraphQLResolveInfo

from accounts.flows.api_keys import record_refused_scopes
from accounts.flows.minting import Maker
from accounts.models import ApiKey, Invitation, Membership, Organisation, User
from accounts.scopes import MissingScopeError, Scope, require
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import domain_errors, one
from core.http.origin import origin_of

Row = TypeVar("Row", bound=Model)


class MachineSession(Protocol):
    """A session that /admin/graphql accepts."""

    api_key: ApiKey


def caller_key(info: GraphQLResolveInfo) -> ApiKey:
    session: MachineSession = info.context.session
    return session.api_key


def caller_maker(info: GraphQLResolveInfo) -> Maker:
    """What the caller may give: no more than its key has now, late in a long document too."""
    with domain_errors():
        return Maker.key(caller_key(info)).as_of_now()


@contextmanager
def scope_refusals(info: GraphQLResolveInfo) -> Iterator[None]:
    """Raises FORBIDDEN for scopes that a flow misses, and records it as for a field."""
    try:
        yield
    except MissingScopeError as error:
        names = [scope.value for scope in error.scopes]
        record_refused_scopes(caller_key(info), names, origin=origin_of(info.context.request))
        raise GraphQLProblem(GraphQLCode.FORBIDDEN, str(error), **error.extensions) from None


def require_scopes(info: GraphQLResolveInfo, *scopes: Scope) -> None:
    """Raises FORBIDDEN. For what only the value of an argument tells, not the document."""
    with scope_refusals(info):
        require(caller_maker(info).scopes, scopes)


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


def known_users(
    organisation: Organisation, *, email: str | None = None, is_accepted: bool | None = None
) -> QuerySet[Any]:
    """The users, each annotated with ``since``: the start of the membership or invitation.

    ``email`` is canonical. It finds an invited user only by the invited address, because the
    organisation does not learn of a later one.
    """
    memberships = Membership.objects.filter(organisation=organisation).order_by()
    invitations = Invitation.objects.of_organisation(organisation).order_by()
    members = memberships if email is None else memberships.filter(user__email=email)
    invited = invitations if email is None else invitations.filter(email=email)
    chosen = {
        None: members.values("user").union(invited.values("user"), all=True),
        True: members.values("user"),
        False: invited.values("user"),
    }
    return (
        User.objects.filter(pk__in=chosen[is_accepted])
        .annotate(since=Coalesce(_created_at(memberships), _created_at(invitations)))
        .prefetch_related("memberships", Prefetch("invitations", invitations))
    )


def _created_at(places: QuerySet[Membership] | QuerySet[Invitation]) -> Subquery:
    return Subquery(places.filter(user=OuterRef("pk")).values("created_at")[:1])
