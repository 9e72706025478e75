"""On a user's page: setting the password, resetting the second factor."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.enums import ActionVariant
from unfold.forms import AdminPasswordChangeForm

from accounts.admin.reach import person, unshared_users
from accounts.audit import record_about
from accounts.flows.passwords import save_password
from accounts.flows.second_factor import has_second_factor, reset_second_factor
from accounts.flows.users import locked
from accounts.models import AuditReason, AuthEventKind, User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import action, display
from core.admin.links import page_of
from core.admin.too_many_attempts import too_many_attempts
from core.errors import RateLimitedError
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
        """Whether this administrator may change the user's credentials."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_unshared

    def has_reset_permission(self: Any, request: HttpRequest, object_id: str | None = None) -> bool:
        """Follows the rule for passwords, but for other users only: the own one needs a code."""
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
    def reset_second_factor(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        user = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _RESET, [user])
        with transaction.atomic():
            self._lock_unshared(request, user)
            reset_second_factor(user)
        record_about(
            AuthEventKind.SECOND_FACTOR_CHANGED,
            origin_of(request),
            user,
            by=person(request),
            reason=AuditReason.SECOND_FACTOR_RESET,
        )
        self.log_change(request, user, "Reset the second factor.")
        self.message_user(request, f"The second factor of {user} was reset.", messages.SUCCESS)
        return redirect(page_of(user))

    def user_change_password(
        self: Any, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        user = self.get_or_404(request, id)
        self._refuse_shared(request, user)
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
            may_save=partial(self._lock_unshared, request),
            save=partial(save_password, origin=origin_of(request), by=person(request)),
        )
        with hashing_for(person(request)):
            response: HttpResponse = DjangoUserAdmin.user_change_password(
                view, request, id, form_url
            )
        return response

    @staticmethod
    def _refuse_shared(request: HttpRequest, user: User) -> None:
        """Raises ``PermissionDenied`` unless this administrator may change the credentials."""
        if not unshared_users(request).filter(pk=user.pk).exists():
            raise PermissionDenied

    def _lock_unshared(self, request: HttpRequest, user: User) -> None:
        """Like ``_refuse_shared``, and locks the user's row until the commit."""
        locked(user)
        self._refuse_shared(request, user)
