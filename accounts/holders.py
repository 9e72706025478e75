"""Which scopes somebody holds: a person by the roles of their memberships, a program by its key.

Rows are read again at each request, so a lowered role or a narrowed key counts at the next one.
"""

from collections.abc import Mapping
from uuid import UUID

from accounts.models import ApiKey, Membership, Organisation, User
from accounts.scopes import EVERYTHING, NONE, Scope, Scopes, scopes_of_role, shared


def scopes_of_key(api_key: ApiKey) -> Scopes:
    """What the key opens in its organisation. A revoked or expired one opens no session.

    A key that a person approved opens what both have at present.
    """
    approver = api_key.approved_by
    if approver is None:
        return api_key.held_scopes
    if not may_hold(approver):
        return NONE
    role = EVERYTHING if approver.is_superuser else scopes_of_role(api_key.approver_role)
    return shared(api_key.held_scopes, role)


def scopes_of_person(user: User, organisation: Organisation | UUID) -> Scopes:
    """What the person may do in the organisation: reads the membership again."""
    if not may_hold(user):
        return NONE
    if user.is_superuser:
        return EVERYTHING
    place = organisation.pk if isinstance(organisation, Organisation) else organisation
    role = Membership.objects.filter(user=user, organisation=place).values_list("role", flat=True)
    return scopes_of_role(role.first() or "")


def scopes_by_organisation(user: User) -> Mapping[UUID, Scopes]:
    """What the person may do by organisation, in one query; those without any are left out.

    Empty for superusers, who hold everything everywhere.
    """
    if not may_hold(user) or user.is_superuser:
        return {}
    roles = Membership.objects.filter(user=user).values_list("organisation_id", "role")
    held = {organisation: scopes_of_role(role) for organisation, role in roles.order_by()}
    return {organisation: scopes for organisation, scopes in held.items() if scopes}


def may_hold(user: User) -> bool:
    """Whether roles count: only for active users with access to the admin."""
    return user.is_active and user.is_staff


def scope_of_permission(permission: str) -> Scope | None:
    """The scope that ``Scope.permission`` names."""
    return _SCOPES.get(permission)


_SCOPES = {scope.permission: scope for scope in Scope}
