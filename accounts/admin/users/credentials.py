"""On a user's page: passwords, the second factor, and access to the admin."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.enums import ActionVariant
from unfold.forms import AdminPasswordChangeForm

from accounts.admin.reach import (
    administered_organisation_ids,
    is_superuser,
    person,
    refuse_beyond,
    unshared_users,
    users_with_managed_login,
)
from accounts.audit import record
from accounts.flows.password_links import request_password_link_for
from accounts.flows.second_factor import has_second_factor, reset_second_factor
from accounts.flows.users import locked, save_password, take_staff_access
from accounts.models import AuditReason, AuthEventKind, User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.admin.confirmation import Question, confirmed
from core.admin.display import action, display
from core.admin.too_many_attempts import too_many_attempts
from core.errors import ForbiddenError, RateLimitedError
from core.http.origin import origin_of

_RESET = Question(
    title="Reset second factor",
    consequences=(
        "The user's authenticator app and recovery codes stop working, and their open logins and "
        "sessions end. Until they set up a new one, the password alone opens the admin. Make sure "
        "that the request really comes from them."
    ),
    button="Reset",
)


_SEND_LINK = Question(
    title="Send password link",
    consequences=(
        "The user gets an e-mail with a link that sets a new password. Only they see the link, and "
        "the present password works until they use it."
    ),
    button="Send",
)
_TAKE_AWAY = Question(
    title="Take away admin access",
    consequences=(
        "The user cannot log in to this admin any more, for any organisation. Their password stops "
        "working, and so does their second factor unless they are a member of another "
        "organisation too. They are told by e-mail. To give access again, invite them: they then "
        "set a new password."
    ),
    button="Take away",
)


class PasswordForm(AdminPasswordChangeForm):
    """Hashes before the transaction, so that hashing does not hold a database lock.

    ``may_save`` locks the user's row and raises if the password may not be set any more; ``save``
    saves the password.
    """

    def __init__(
        self,
        *args: Any,
        may_save: Callable[[User], None],
        save: Callable[[User], None],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._may_save, self._save = may_save, save

    def set_password_and_save(self, user: Any, *args: Any, **options: Any) -> Any:
        super().set_password_and_save(user, *args, **{**options, "commit": False})
        with transaction.atomic():
            self._may_save(user)
            self._save(user)
        return user


class UserCredentials:
    """Mixin for the model admin of users."""

    def has_password_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        """Whether this administrator may set the user's password."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.has_managed_login

    def has_link_permission(self: Any, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether this administrator may send the user a link for a new password."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_own and user.is_staff and user.is_active

    def has_access_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        """Whether this administrator may take away the access to the admin.

        Superusers change it in the form.
        """
        user = self.get_object(request, object_id) if object_id else None
        if user is None or is_superuser(request) or user == request.user:
            return False
        return user.is_own and user.is_staff

    def has_reset_permission(self: Any, request: HttpRequest, object_id: str | None = None) -> bool:
        """For other users only: the own second factor needs a code."""
        user = self.get_object(request, object_id) if object_id else None
        if user is None or not user.is_unshared or user == request.user:
            return False
        return has_second_factor(user)

    @display(description="Password")
    def password_state(self, user: User) -> str:
        return "Set" if user.has_usable_password() else "Not set: PIN login only"

    @display(description="Second factor", label={"On": "success", "Off": ""})
    def second_factor(self, user: User) -> str:
        return "On" if has_second_factor(user) else "Off"

    @action(description="Set password", permissions=["password"], icon="password")
    def set_password(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("admin:auth_user_password_change", object_id)

    @action(
        description="Reset second factor",
        permissions=["reset"],
        icon="phonelink_erase",
        variant=ActionVariant.WARNING,
    )
    @confirmed(
        _RESET, logged="Reset the second factor.", told="The second factor of {row} was reset."
    )
    def reset_second_factor(self, request: HttpRequest, user: User) -> None:
        with transaction.atomic():
            locked(user)
            _refuse_unless(user, unshared_users(request))
            refuse_beyond(request, user)
            reset_second_factor(user)
        record(
            AuthEventKind.SECOND_FACTOR_CHANGED,
            origin_of(request),
            user=user,
            by=person(request),
            reason=AuditReason.SECOND_FACTOR_RESET,
        )

    def user_change_password(
        self: Any, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        user = self.get_or_404(request, id)
        _refuse_unless(user, users_with_managed_login(request))
        refuse_beyond(request, user)
        if request.method == "POST":
            try:
                by = str(person(request).pk)
                hit([windows.PASSWORD_CHANGES_OF_PERSON], "password-change", by)
            except RateLimitedError as limited:
                return too_many_attempts(request, limited, "You have set too many passwords.")
        # The form needs the request, so each request gets a copy of this model admin.
        view = copy(self)
        view.change_password_form = partial(
            PasswordForm,
            may_save=partial(_lock_managed_login, request),
            save=partial(save_password, origin=origin_of(request), by=person(request)),
        )
        with hashing_for(person(request)):
            response: HttpResponse = DjangoUserAdmin.user_change_password(
                view, request, id, form_url
            )
        return response

    @action(description="Send password link", permissions=["link"], icon="outgoing_mail")
    @confirmed(
        _SEND_LINK,
        logged="Sent a link for a new password.",
        told="A link is being sent to {row.email}.",
    )
    def send_password_link(self, request: HttpRequest, user: User) -> HttpResponse | None:
        refuse_beyond(request, user)
        try:
            request_password_link_for(user, origin_of(request))
        except RateLimitedError as limited:
            return too_many_attempts(request, limited, "Too many links were sent to this address.")
        return None

    @action(
        description="Take away admin access",
        permissions=["access"],
        icon="person_off",
        variant=ActionVariant.WARNING,
    )
    @confirmed(
        _TAKE_AWAY,
        logged="Took away the access to the admin.",
        told="{row} cannot log in to the admin any more.",
    )
    def take_admin_access(self, request: HttpRequest, user: User) -> None:
        refuse_beyond(request, user)
        try:
            take_staff_access(
                administered_organisation_ids(request),
                user,
                by=person(request),
                origin=origin_of(request),
            )
        except ForbiddenError as refusal:
            raise PermissionDenied from refusal


def _refuse_unless(user: User, allowed: QuerySet[User]) -> None:
    """Raises ``PermissionDenied`` unless the user is one of those allowed."""
    if not allowed.filter(pk=user.pk).exists():
        raise PermissionDenied


def _lock_managed_login(request: HttpRequest, user: User) -> None:
    """Locks the user's row until the commit, and refuses what may not be changed any more."""
    locked(user)
    _refuse_unless(user, users_with_managed_login(request))
    refuse_beyond(request, user)
