"""Users: their profile for who has the say over it, their place in the organisation for others."""

from copy import copy
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from unfold.enums import ActionVariant

from accounts.admin.members import UserMembershipsInline, tell_of_invitations
from accounts.admin.reach import (
    OwnUsersFilter,
    administered_organisation_ids,
    administered_organisations,
    is_superuser,
    own_users,
    person,
    unshared_users,
)
from accounts.admin.refusals import RefusalsAsMessages
from accounts.admin.tenancy import TenantModelAdmin
from accounts.admin.users.form import PROFILE_HELP, NewUserForm, PasswordForm
from accounts.admin.users.locks import UserLocks
from accounts.admin.users.test_message import UserTestMessage
from accounts.audit import record_about
from accounts.email_address import canonical_email
from accounts.flows.second_factor import has_second_factor, reset_second_factor
from accounts.flows.users import change_profile, create_user, held, update_user
from accounts.models import AuditReason, AuthEventKind, Organisation, User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import page_of
from core.admin.too_many_attempts import too_many_attempts
from core.database.ids import parse_uuid
from core.errors import RateLimitedError
from core.http.origin import Origin, origin_of

admin.site.unregister(Group)

_FOREIGN = (
    "This user does not belong to your organisation. The profile, the devices and the sessions are "
    "for the organisation that made the user; the role in your own organisation is yours to change."
)
_SHARED = (
    "This user has become a member of another organisation too. While that lasts, e-mail, phone, "
    "password and second factor can be changed by superusers only: they open the other "
    "organisation as well."
)


_STATES = ("pin_login", "admin_login", "password_state", "second_factor")

_RESET = Question(
    title="Reset second factor",
    consequences=(
        "The authenticator app and the recovery codes of this person are worth nothing from then "
        "on, and the password alone opens the admin until they set up new ones. Their open logins "
        "and sessions end. Be sure that it is they who ask."
    ),
    button="Reset",
)


@admin.register(User)
class UserAdmin(RefusalsAsMessages, UserLocks, UserTestMessage, TenantModelAdmin, DjangoUserAdmin):
    empty_state = EmptyState(
        "A user is a person who logs in by PIN code, and with a password to this admin if they "
        "are staff. Add the first.",
        "Add user",
        "admin:accounts_user_add",
    )
    help_texts = PROFILE_HELP | {
        "is_active": (
            "Switched off, the user cannot log in, and every session of theirs ends at once, "
            "for good."
        ),
        "is_staff": (
            "May enter this admin, with a password. They see only organisations where they are "
            "administrator."
        ),
        "is_superuser": "Sees and changes everything here, of every organisation.",
    }
    add_form = NewUserForm
    form = forms.ModelForm
    list_display = ("email", "shown_name", "shown_active", "shown_staff", "shown_created_at")
    list_filter = (
        ("memberships__organisation", ScopedAutocompleteFilter),
        ("is_active", OwnUsersFilter),
        ("is_staff", OwnUsersFilter),
    )
    search_fields = ("email",)
    search_help_text = "E-mail or name"
    ordering = ("email",)
    # An order by another column would tell it of users of other organisations too.
    sortable_by = ("email",)
    filter_horizontal: ClassVar[tuple[str, ...]] = ()
    inlines = (UserMembershipsInline,)
    actions_detail = (
        "unlock_pin_login",
        "unlock_admin_login",
        "send_test_message",
        "set_password",
        "reset_second_factor",
    )
    add_fieldsets = (
        (None, {"fields": ("email", "name", "phone")}),
        ("Membership", {"fields": ("organisation", "role")}),
    )

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        members = User.objects.filter(
            memberships__organisation__in=administered_organisations(request)
        )
        return rows.filter(pk__in=members.values("pk"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        is_own = Exists(own_users(request).filter(pk=OuterRef("pk")))
        is_unshared = Exists(unshared_users(request).filter(pk=OuterRef("pk")))
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(is_own=is_own, is_unshared=is_unshared)

    def organisation_that_asks(
        self, request: HttpRequest, object_id: str | None
    ) -> Organisation | None:
        """The organisation chosen for a new user; whatever was typed there, one of the person's."""
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
        """By e-mail, and by the names that the person may see."""
        term = search_term.strip()
        found = Q(email__icontains=term) | Q(name__icontains=term, is_own=True)
        return queryset.filter(found), False

    def has_profile_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether the user's profile is this person's to see."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_own

    def has_password_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether this person may change what the user logs in with."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_unshared

    def has_reset_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """As for the password, of somebody who has one; one's own is turned off with a code."""
        user = self.get_object(request, object_id) if object_id else None
        if user is None or not user.is_unshared or user == request.user:
            return False
        return has_second_factor(user)

    @display(description="Second factor", label={"On": "success", "Off": ""})
    def second_factor(self, user: User) -> str:
        return "On" if has_second_factor(user) else "Off"

    @display(description="Name")
    def shown_name(self, user: Any) -> str:
        return user.name if user.is_own else ""

    @admin.display(description="Active", boolean=True)
    def shown_active(self, user: Any) -> bool | None:
        return user.is_active if user.is_own else None

    @admin.display(description="Staff", boolean=True)
    def shown_staff(self, user: Any) -> bool | None:
        return user.is_staff if user.is_own else None

    @display(description="Created at")
    def shown_created_at(self, user: Any) -> Any:
        return user.created_at if user.is_own else ""

    @display(description="Password")
    def password_state(self, user: User) -> str:
        return "Set" if user.has_usable_password() else "None: logs in by PIN only."

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.add_fieldsets
        if not obj.is_own:
            return ((None, {"fields": ("email",), "description": _FOREIGN}),)
        access = ["is_active", "is_staff", "pin_login", "admin_login"]
        access += ["password_state", "second_factor"]
        if is_superuser(request):
            access.insert(2, "is_superuser")
        return (
            (
                None,
                {
                    "fields": ("email", "name", "phone"),
                    "description": "" if obj.is_unshared else _SHARED,
                },
            ),
            ("Access", {"fields": access}),
            ("History", {"fields": ("id", "created_at", "last_login")}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        always = ["id", "created_at", "last_login", *_STATES]
        if obj is not None and not obj.is_own:
            return [*always, "email"]
        if obj is not None and not obj.is_unshared:
            always += ["email", "phone"]
        return always if is_superuser(request) else [*always, "is_staff"]

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> Any:
        return () if obj is None else self.inlines

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        if obj is None:
            form.organisations = administered_organisations(request)
            form.is_organisation_required = not is_superuser(request)
        return form

    def save_model(
        self, request: HttpRequest, obj: User, form: forms.ModelForm[User], change: bool
    ) -> None:
        if not change:
            obj.pk = _create(form.cleaned_data, origin_of(request)).pk
            obj.refresh_from_db()
            return
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        # As the database has it: the form's own has its changes already.
        user = held(obj)
        reach = administered_organisation_ids(request)
        if is_superuser(request):
            self._change_as_superuser(request, user, changes)
        elif changes and user.home is not None and user.home_id in reach:
            update_user(user.home, user, origin=origin_of(request), **changes)

    def _change_as_superuser(
        self, request: HttpRequest, user: User, changes: dict[str, Any]
    ) -> None:
        change_profile(user, **changes)
        if changes:
            record_about(
                AuthEventKind.USER_CHANGED,
                origin_of(request),
                user,
                by=person(request),
                reason=", ".join(sorted(changes)),
            )

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        tell_of_invitations(self, request, formset)

    @action(description="Set password", permissions=["password"], icon="password")
    def set_password(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("admin:auth_user_password_change", object_id)

    @action(
        description="Reset second factor",
        permissions=["reset"],
        icon="phonelink_erase",
        variant=ActionVariant.WARNING,
    )
    def reset_second_factor(self, request: HttpRequest, object_id: str) -> HttpResponse:
        user = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _RESET, [user])
        with transaction.atomic():
            self._hold_unshared(request, user)
            reset_second_factor(user)
        record_about(
            AuthEventKind.SECOND_FACTOR_CHANGED,
            origin_of(request),
            user,
            by=person(request),
            reason=AuditReason.SECOND_FACTOR_RESET,
        )
        self.log_change(request, user, "Reset the second factor.")
        self.message_user(request, f"{user} has no second factor now.", messages.SUCCESS)
        return redirect(page_of(user))

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        user = self.get_or_404(request, id)
        self._refuse_shared(request, user)
        if request.method == "POST":
            try:
                by = str(person(request).pk)
                hit([windows.PASSWORD_CHANGES_OF_PERSON], "password-change", by)
            except RateLimitedError as limited:
                return too_many_attempts(request, limited, "You have set passwords too often.")
        # One for each request: the form asks once more, when the password is hashed.
        view = copy(self)
        view.change_password_form = partial(
            PasswordForm, may_save=partial(self._hold_unshared, request)
        )
        with hashing_for(person(request)):
            response: HttpResponse = DjangoUserAdmin.user_change_password(
                view, request, id, form_url
            )
        if isinstance(response, HttpResponseRedirect):
            record_about(
                AuthEventKind.USER_CHANGED,
                origin_of(request),
                user,
                by=person(request),
                reason=AuditReason.PASSWORD_CHANGED,
            )
        return response

    def _hold_unshared(self, request: HttpRequest, user: User) -> None:
        """Refuses unless this person may change what the user logs in with, until the commit."""
        held(user)
        self._refuse_shared(request, user)

    @staticmethod
    def _refuse_shared(request: HttpRequest, user: User) -> None:
        if not unshared_users(request).filter(pk=user.pk).exists():
            raise PermissionDenied

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """For superusers: it tells of the user's places in other organisations."""
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


def _create(data: dict[str, Any], origin: Origin) -> User:
    profile = {name: data[name] for name in ("email", "name", "phone")}
    if data["organisation"] is None:
        user: User = User.objects.create_user(**profile)
        return user
    return create_user(data["organisation"], role=data["role"], origin=origin, **profile)
