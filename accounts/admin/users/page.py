"""Users in the admin: the list, and the page of a user.

The home organisation sees the profile, other organisations only the membership.
"""

from operator import itemgetter
from typing import Any, ClassVar

import django_otp.plugins.otp_static.admin
import django_otp.plugins.otp_totp.admin  # noqa: F401
from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.views import ChangeList

from accounts.addresses import canonical_email
from accounts.admin.invite_administrator import UserInvitation
from accounts.admin.members import (
    AsksBeforeRoles,
    UserMembershipsInline,
    tell_of_invitations,
)
from accounts.admin.reach import (
    OwnUsersFilter,
    administered_organisations,
    is_superuser,
    organisations_with,
    own_users,
    unshared_users,
    users_with_managed_login,
)
from accounts.admin.refusals import RefusalsAsMessages
from accounts.admin.step_up import is_proved
from accounts.admin.tenancy import TenantModelAdmin
from accounts.admin.test_messages import UserTestMessage
from accounts.admin.users.credentials import UserCredentials
from accounts.admin.users.form import PROFILE_HELP, NewUserForm, UserSaving
from accounts.admin.users.locks import UserLocks
from accounts.models import Membership, Organisation, PinFailures, Role, User
from accounts.scopes import Scope
from core.admin.display import EmptyState, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import list_of
from core.admin.times import relative
from core.database.ids import parse_uuid
from core.database.subqueries import CountOf, ListOf

# In the list, of a user.
MAX_MEMBERSHIPS = 3
_STATES = ("pin_login", "admin_login", "password_state", "second_factor")
_FOREIGN = (
    "This user belongs to another organisation, which manages the profile, devices and sessions. "
    "You can change only the role in your own organisation."
)
_SHARED = (
    "This user is also a member of another organisation. Until that ends, only superusers can "
    "change the e-mail, phone, password and second factor, because these also give access to the "
    "other organisation."
)
_ADMINISTRATOR = (
    "This user can log in to this admin, and alone changes their e-mail, phone and password, from "
    "the menu of their account. You can send them a link for a new password, reset a lost second "
    "factor, or take the admin access away."
)
_STAFF_OF_SUPERUSERS = (
    "This user can log in to this admin, and alone changes their e-mail and phone, from the menu "
    "of their account. If they have lost the mailbox, turn Staff off, which ends password and "
    "second factor, and save; then change the e-mail, and give access again."
)
_STAFF = (
    "Whether the user can log in to this admin. To give a login, use “Invite to the admin”: the "
    "user gets an e-mail and sets their own password. To take it away, use “Take away admin "
    "access”; to take away access to your organisation alone, change the role below to Member."
)


def _why_login_is_read_only(request: HttpRequest, user: Any) -> str:
    if _has_login_changed_here(user):
        return ""
    if is_superuser(request):
        return _STAFF_OF_SUPERUSERS
    return _ADMINISTRATOR if user.is_unshared else _SHARED


def _has_login_changed_here(user: Any) -> bool:
    """Staff alone change what they log in with, on a page of their own; so superusers do too."""
    return user.has_managed_login and not user.is_staff


# The pages of second factors show their secrets.
admin.site.unregister([Group, StaticDevice, TOTPDevice])


class UserChangeList(ChangeList):
    """Loads memberships and the number of lockouts with the users, which saves two statements.

    The memberships are those in organisations whose users the person sees.
    """

    root_queryset: Any
    result_list: Any

    def get_queryset(self, request: HttpRequest, *args: Any) -> QuerySet[Any]:
        places = organisations_with(request, Scope.READ_PEOPLE)
        visible = Membership.objects.filter(user=OuterRef("pk"), organisation__in=places)
        of_each = JSONObject(organisation="organisation__name", role="role")
        self.root_queryset = self.root_queryset.annotate(
            visible_memberships=ListOf(visible.values(found=of_each)),
            number_of_lockouts=CountOf(_lockouts(request)),
        )
        rows: QuerySet[Any] = super().get_queryset(request, *args)
        return rows

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        first = next(iter(self.result_list), None)
        self.number_of_lockouts = (
            _lockouts(request).count() if first is None else first.number_of_lockouts
        )


def _lockouts(request: HttpRequest) -> QuerySet[Any]:
    """The PIN logins that are locked now, as many as are counted."""
    reached: Any = admin.site.get_model_admin(PinFailures).get_queryset(request)
    found: QuerySet[Any] = reached.stopped().order_by().values("pk")
    return found[: settings.ADMIN_MAX_COUNTED + 1]


def _by_name(user: Any) -> list[dict[str, str]]:
    return sorted(user.visible_memberships, key=itemgetter("organisation"))


def _lines(texts: list[str]) -> SafeString:
    """One line a membership; of many, the first ones."""
    more = len(texts) - MAX_MEMBERSHIPS
    shown = [*texts[:MAX_MEMBERSHIPS], *([f"and {more:,} more"] if more > 0 else [])]
    return format_html_join(mark_safe("<br>"), "{}", ((text,) for text in shown))


@admin.register(User)
class UserAdmin(
    AsksBeforeRoles,
    RefusalsAsMessages,
    UserSaving,
    UserCredentials,
    UserLocks,
    UserTestMessage,
    UserInvitation,
    TenantModelAdmin,
    DjangoUserAdmin,
):
    empty_state = EmptyState(
        "Users log in with a PIN code; staff also log in to this admin with a password. Add the "
        "first user.",
        "Add user",
        "admin:accounts_user_add",
    )
    help_texts = PROFILE_HELP | {
        "is_active": "When off, the user cannot log in, and all their sessions end for good.",
        "is_staff": (
            "Can log in to this admin with a password. Sees only what their roles "
            "open. Turning it on ends a password from before, which the user's "
            "organisation may know: set another, or send a link."
        ),
        "is_superuser": "Can see and change everything in all organisations.",
    }
    add_form = NewUserForm
    form = forms.ModelForm
    list_display = (
        "email",
        "shown_name",
        "shown_organisations",
        "shown_roles",
        "shown_active",
        "shown_staff",
        "shown_last_login",
        "shown_created_at",
    )
    list_before_template = "admin/users.html"
    list_filter = (
        ("memberships__organisation", ScopedAutocompleteFilter),
        ("is_active", OwnUsersFilter),
        ("is_staff", OwnUsersFilter),
    )
    search_fields = ("email",)
    search_help_text = "E-mail or name"
    ordering = ("email",)
    # Sorting by another column would reveal values of users of other organisations.
    sortable_by = ("email",)
    filter_horizontal: ClassVar[tuple[str, ...]] = ()
    inlines = (UserMembershipsInline,)
    actions_list = ("invite_administrator",)
    view_scope = Scope.READ_PEOPLE
    change_scope = Scope.WRITE_PEOPLE
    page_scopes = dict.fromkeys(
        (
            "change_roles",
            "invite_administrator",
            "invite_as_administrator",
            "unlock_pin_login",
            "unlock_admin_login",
            "send_test_message",
            "set_password",
            "auth_user_password_change",
            "send_password_link",
            "reset_second_factor",
            "take_admin_access",
        ),
        Scope.WRITE_PEOPLE,
    )
    proved_pages = frozenset(
        {
            "add",
            "change_roles",
            "auth_user_password_change",
            "reset_second_factor",
            "take_admin_access",
        }
    )
    actions_detail = (
        "change_roles",
        "invite_as_administrator",
        "unlock_pin_login",
        "unlock_admin_login",
        "send_test_message",
        "set_password",
        "send_password_link",
        "reset_second_factor",
        "take_admin_access",
    )
    add_fieldsets = (
        (None, {"fields": ("email", "name", "phone")}),
        ("Membership", {"fields": ("organisation", "role")}),
    )

    def place_of(self, row: User) -> Organisation | None:
        return row.home

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        members = User.objects.filter(
            memberships__organisation__in=administered_organisations(request)
        )
        return rows.filter(pk__in=members.values("pk"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        is_own = Exists(own_users(request).filter(pk=OuterRef("pk")))
        is_unshared = Exists(unshared_users(request).filter(pk=OuterRef("pk")))
        has_managed_login = Exists(users_with_managed_login(request).filter(pk=OuterRef("pk")))
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(
            is_own=is_own, is_unshared=is_unshared, has_managed_login=has_managed_login
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return UserChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {**(extra_context or {}), "lockouts": list_of(PinFailures)}
        response: HttpResponse = super().changelist_view(request, context)
        return response

    def organisation_that_asks(
        self, request: HttpRequest, object_id: str | None
    ) -> Organisation | None:
        """The home of a user whose e-mail changes; for a new user the chosen organisation.

        Without a valid choice, the first organisation within reach.
        """
        if object_id is not None:
            user = self.get_object(request, object_id)
            typed = canonical_email(request.POST.get("email", ""))
            return None if user is None or user.email == typed else user.home
        own = {str(each.pk): each for each in administered_organisations(request)}
        chosen = parse_uuid(request.POST.get("organisation", ""))
        return own.get(str(chosen)) or next(iter(own.values()), None)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Searches e-mails, and the names that the administrator may see."""
        term = search_term.strip()
        found = Q(email__icontains=term) | Q(name__icontains=term, is_own=True)
        return queryset.filter(found), False

    def has_profile_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether this administrator may see the user's profile."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_own

    @display(description="Name")
    def shown_name(self, user: Any) -> str:
        return user.name if user.is_own else ""

    @display(description="Organisation")
    def shown_organisations(self, user: Any) -> SafeString:
        return _lines([each["organisation"] for each in _by_name(user)])

    @display(description="Role")
    def shown_roles(self, user: Any) -> SafeString:
        return _lines([Role(each["role"]).label for each in _by_name(user)])

    @admin.display(description="Active", boolean=True)
    def shown_active(self, user: Any) -> bool | None:
        return user.is_active if user.is_own else None

    @display(description="Staff")
    def shown_staff(self, user: Any) -> str:
        return "Yes" if user.is_own and user.is_staff else ""

    @display(description="Last admin login")
    def shown_last_login(self, user: Any) -> Any:
        return relative(user.last_login) if user.is_own and user.last_login else ""

    @display(description="Created at")
    def shown_created_at(self, user: Any) -> Any:
        return relative(user.created_at) if user.is_own else ""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.add_fieldsets
        if not obj.is_own:
            return ((None, {"fields": ("email",), "description": _FOREIGN}),)
        superuser = ["is_superuser"] if is_superuser(request) else []
        return (
            (
                None,
                {
                    "fields": ("email", "name", "phone"),
                    "description": _why_login_is_read_only(request, obj),
                },
            ),
            ("Access", {"fields": ("is_active", "is_staff", *superuser, *_STATES)}),
            ("History", {"fields": ("id", "created_at", "last_login")}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        always = ["id", "created_at", "last_login", *_STATES]
        if obj is not None and not obj.is_own:
            return [*always, "email"]
        if obj is not None and not _has_login_changed_here(obj):
            always += ["email", "phone"]
        if not is_proved(request):
            always += ["is_staff", "is_superuser"]
        return always if is_superuser(request) else [*always, "is_staff"]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if not is_superuser(request):
            kwargs["help_texts"] = {**kwargs.get("help_texts", {}), "is_staff": _STAFF}
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        if obj is None:
            form.organisations = administered_organisations(request)
            form.is_organisation_required = not is_superuser(request)
        return form

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        tell_of_invitations(self, request, formset)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """For superusers only: it shows the user's memberships in other organisations."""
        if not is_superuser(request):
            raise PermissionDenied
        response: HttpResponse = super().history_view(request, object_id, extra_context)
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        response: HttpResponse = super().change_view(
            request,
            object_id,
            form_url,
            {**(extra_context or {}), "show_history": is_superuser(request)},
        )
        return response
