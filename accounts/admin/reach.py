"""Which organisations and users a person may manage in the admin: their reach.

Superusers reach all. Other staff reach the organisations where they have the administrator role,
and the users whose home is one of these.
"""

from typing import Any, cast
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import BooleanRadioFilter

from accounts.models import Membership, Organisation, Role, User

_CACHED = "_administered_organisation_ids"


def person(request: HttpRequest) -> User:
    """The logged-in user; the admin admits no other requests."""
    return cast("User", request.user)


def is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def is_administrator(request: HttpRequest) -> bool:
    """Whether the person may use the admin at all."""
    if not isinstance(request.user, User) or not request.user.is_active:
        return False
    return request.user.is_staff and (
        request.user.is_superuser or bool(administered_organisation_ids(request))
    )


def administered_organisation_ids(request: HttpRequest) -> list[UUID]:
    """The ids of the organisations where the person is an administrator, read once per request."""
    cached: list[UUID] | None = getattr(request, _CACHED, None)
    if cached is None:
        cached = list(
            Membership.objects.filter(user=person(request), role=Role.ADMINISTRATOR).values_list(
                "organisation_id", flat=True
            )
        )
        setattr(request, _CACHED, cached)
    return cached


def administered_organisations(request: HttpRequest) -> QuerySet[Organisation]:
    if is_superuser(request):
        return Organisation.objects.all()
    return Organisation.objects.filter(pk__in=administered_organisation_ids(request))


def own_users(request: HttpRequest) -> QuerySet[User]:
    """The users whose profile, devices and sessions the person manages.

    Their home is an organisation within reach (``User.belongs_to``).
    """
    if is_superuser(request):
        return User.objects.all()
    users: QuerySet[User] = User.objects.belonging_to(*administered_organisation_ids(request))
    return users


def unshared_users(request: HttpRequest) -> QuerySet[User]:
    """The own users whose second factor the person may reset.

    They are not members of any other organisation (``User.belongs_only_to``).
    """
    if is_superuser(request):
        return User.objects.all()
    users: QuerySet[User] = User.objects.belonging_only_to(*administered_organisation_ids(request))
    return users


def users_with_managed_login(request: HttpRequest) -> QuerySet[User]:
    """The users whose e-mail, phone and password the person may change.

    They have no access to the admin (``User.has_login_changed_by``).
    """
    if is_superuser(request):
        return User.objects.all()
    managed = User.objects.with_login_changed_by(*administered_organisation_ids(request))
    users: QuerySet[User] = managed
    return users


class SuperusersOnly:
    """Mixin for read-only pages about the whole installation; changes are made through actions."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class OwnUsersFilter(BooleanRadioFilter):
    """Filters by a value that only the home organisation may see, so finds only own users."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().queryset(request, queryset)
        return rows if self.value() in (None, "") else rows.filter(is_own=True)
