"""The authentication backend of the admin: login by e-mail, permissions by roles."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from accounts.addresses import canonical_email
from accounts.holders import may_hold, scope_of_permission, scopes_by_organisation
from accounts.models import Organisation, User
from accounts.scopes import EVERYTHING, NONE, Scope, Scopes, covers

_READ = "_scopes_by_organisation"


class CanonicalEmailBackend(ModelBackend):
    """Django's backend, with the typed e-mail converted to its canonical form.

    Permissions are scopes (``Scope.permission``), held by the role in an organisation. Django's
    groups and rows of permissions are not used.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        email = username or kwargs.get(User.USERNAME_FIELD)
        if email is None:
            return None
        user = super().authenticate(request, canonical_email(email), password)
        return user if isinstance(user, User) else None

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Whether the person has the scope in the organisation ``obj``, or in that of the row.

        Without ``obj``: in any organisation. A superuser has every scope everywhere.
        """
        scope = scope_of_permission(perm)
        return scope is not None and covers(held_in(user_obj, obj), [scope])

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        held = held_in(user_obj, obj)
        return {scope.permission for scope in Scope if covers(held, [scope])}

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return bool(held_in(user_obj, None))


def held_in(user: Any, place: Any) -> Scopes:
    """What the person holds in the place: an organisation, a row of one, or ``None`` for any.

    The roles are read once for each ``User`` object, which is loaded for each request.
    """
    if not isinstance(user, User) or not may_hold(user):
        return NONE
    if user.is_superuser:
        return EVERYTHING
    held = read_once(user)
    if place is None:
        return NONE.union(*held.values())
    key = place.pk if isinstance(place, Organisation) else getattr(place, "organisation_id", None)
    return NONE if key is None else held.get(key, NONE)


def read_once(user: User) -> Mapping[UUID, Scopes]:
    """``scopes_by_organisation``, kept with the object as Django keeps its permissions."""
    held: Mapping[UUID, Scopes] | None = getattr(user, _READ, None)
    if held is None:
        held = scopes_by_organisation(user)
        setattr(user, _READ, held)
    return held
