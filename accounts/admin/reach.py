"""Which organisations and users a person may manage in the admin: their reach.

Superusers reach all. Other staff reach the organisations where their role has the scope of the
page, and the users whose home is one of these. A page names its scope; by default it is
``Scope.ALL``, which only administrators have.

Where one organisation is in view, lists and home show what its administrators would see. It is kept
in the session of the admin, and gives nobody anything: it counts only within the person's reach,
and pages of single rows, forms and permissions are as before.
"""

from typing import Any, cast
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import BooleanRadioFilter

from accounts.backends import held_in, read_once
from accounts.flows.minting import BeyondMakerError, Maker
from accounts.models import Organisation, User
from accounts.scopes import MissingScopeError, Role, Scope, covers, roles_with
from core.database.ids import parse_uuid

_IN_VIEW_KEY = "organisation_in_view"
_IN_VIEW_READ = "_organisation_in_view"
_HOME = "index"
_LISTS = "_changelist"


def person(request: HttpRequest) -> User:
    """The logged-in user; the admin admits no other requests."""
    return cast("User", request.user)


def is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def reaches_all(request: HttpRequest) -> bool:
    """Whether the page shows the rows of all organisations."""
    return is_superuser(request) and id_in_lists(request) is None


def has_any_scope(request: HttpRequest) -> bool:
    """Whether the person may do anything in the admin: superusers, and all roles above Member."""
    return isinstance(request.user, User) and bool(held_in(request.user, None))


class RoleNeededError(PermissionDenied):
    """The person's role lacks scopes; the 403 page says which roles have them all."""

    def __init__(self, *scopes: Scope, place: object = None) -> None:
        roles = [Role(role).label for role in roles_with(*scopes)]
        where = f" in {place}" if isinstance(place, Organisation) else ""
        self.told = (
            f"This needs the role {' or '.join(roles)}{where}, which your account does not have. "
            "Ask an administrator of your organisation."
        )
        super().__init__(self.told)

    @classmethod
    def beyond(
        cls, refusal: BeyondMakerError | MissingScopeError, place: object = None
    ) -> "RoleNeededError":
        """The same refusal, for a person."""
        return cls(*refusal.scopes, place=place)


def organisation_ids(request: HttpRequest) -> list[UUID]:
    """The ids of the organisations where the person's role has any scope; none for superusers."""
    return list(read_once(person(request)))


def organisations_with(request: HttpRequest, scope: Scope) -> QuerySet[Organisation]:
    """The organisations where the person has the scope."""
    if reaches_all(request):
        return Organisation.objects.all()
    return Organisation.objects.filter(pk__in=organisation_ids_with(request, scope))


def administered_organisation_ids(request: HttpRequest) -> list[UUID]:
    """The ids of the organisations where the person is an administrator."""
    return organisation_ids_with(request, Scope.ALL)


def organisation_ids_with(request: HttpRequest, scope: Scope) -> list[UUID]:
    """The ids of the organisations where the person's role has the scope, read once per request.

    Empty for superusers, who reach all. Lists have at most the one in view.
    """
    chosen = id_in_lists(request)
    if is_superuser(request):
        return [] if chosen is None else [chosen]
    return [
        organisation
        for organisation, scopes in read_once(person(request)).items()
        if chosen in (None, organisation) and covers(scopes, [scope])
    ]


def has_scope(request: HttpRequest, scope: Scope, place: Any = None) -> bool:
    """Whether the person has the scope in the place: an organisation, or a row of one.

    Without a place: in any organisation.
    """
    return person(request).has_perm(scope.permission, place)


def maker_of(request: HttpRequest, organisation: Organisation | UUID | None) -> Maker:
    """What the person may give in the organisation, for the flows."""
    return Maker.person(person(request), organisation)


def refuse_beyond(request: HttpRequest, *users: User) -> None:
    """Raises ``RoleNeededError`` for the ways in of a user who has more than the person."""
    by_home: dict[UUID | None, list[User]] = {}
    for user in users:
        by_home.setdefault(user.home_id, []).append(user)
    try:
        for home, of_home in by_home.items():
            maker_of(request, home).touches_all(of_home, home)
    except BeyondMakerError as refusal:
        raise RoleNeededError.beyond(refusal) from refusal


def administered_organisations(request: HttpRequest) -> QuerySet[Organisation]:
    if reaches_all(request):
        return Organisation.objects.all()
    return Organisation.objects.filter(pk__in=administered_organisation_ids(request))


def own_users(request: HttpRequest) -> QuerySet[User]:
    """The users whose profile, devices and sessions the person manages.

    Their home is an organisation within reach (``User.belongs_to``).
    """
    if reaches_all(request):
        return User.objects.all()
    users: QuerySet[User] = User.objects.belonging_to(*administered_organisation_ids(request))
    return users


def unshared_users(request: HttpRequest) -> QuerySet[User]:
    """The own users whose second factor the person may reset.

    They are not members of any other organisation (``User.belongs_only_to``).
    """
    if reaches_all(request):
        return User.objects.all()
    users: QuerySet[User] = User.objects.belonging_only_to(*administered_organisation_ids(request))
    return users


def users_with_managed_login(request: HttpRequest) -> QuerySet[User]:
    """The users whose e-mail, phone and password the person may change.

    They have no access to the admin (``User.has_login_changed_by``).
    """
    if reaches_all(request):
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


def look_at(request: HttpRequest, organisation: Organisation | None) -> None:
    """Shows that organisation alone from now on; ``None`` shows all within reach."""
    if organisation is None:
        request.session.pop(_IN_VIEW_KEY, None)
    else:
        request.session[_IN_VIEW_KEY] = str(organisation.pk)


def organisation_in_view(request: HttpRequest) -> Organisation | None:
    """The organisation that the person has chosen, while it exists within reach.

    Read once per request, and not at all for those who have chosen none.
    """
    if not hasattr(request, _IN_VIEW_READ):
        setattr(request, _IN_VIEW_READ, _chosen_organisation(request))
    return cast("Organisation | None", getattr(request, _IN_VIEW_READ))


def id_in_lists(request: HttpRequest) -> UUID | None:
    """The id of the organisation in view, on pages that it narrows."""
    match = request.resolver_match
    name = (match and match.url_name) or ""
    if name != _HOME and not name.endswith(_LISTS):
        return None
    organisation = organisation_in_view(request)
    return None if organisation is None else organisation.pk


def _chosen_organisation(request: HttpRequest) -> Organisation | None:
    chosen, user = parse_uuid(str(request.session.get(_IN_VIEW_KEY, ""))), request.user
    if chosen is None or not isinstance(user, User):
        return None
    if not user.is_superuser and chosen not in read_once(user):
        return None
    return Organisation.objects.filter(pk=chosen).first()
