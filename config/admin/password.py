"""The page on which users change their own password."""

from functools import partial
from typing import Any, cast

from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from unfold.forms import AdminOwnPasswordChangeForm

from accounts.flows.passwords import save_password
from accounts.models import User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from config.admin.known_browser import remember_browser
from core.admin.too_many_attempts import too_many_attempts
from core.errors import RateLimitedError
from core.http.origin import Origin, origin_of

TOO_MANY = "There were too many attempts to change this password."


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """Saves the password alone.

    Django saves all of the user as read before both hashes were computed, which would undo a
    deactivation or a removed permission from that time.
    """

    def __init__(self, *args: Any, origin: Origin, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._origin = origin

    def set_password_and_save(self, user: Any, *arguments: Any, **options: Any) -> Any:
        super().set_password_and_save(user, *arguments, **{**options, "commit": False})
        save_password(user, origin=self._origin)
        return user


def change_password(request: HttpRequest, context: dict[str, Any]) -> HttpResponseBase:
    """Change the password, which ends the user's other logins to the admin.

    Attempts are limited, so that the old password cannot be guessed at an unattended login.
    """
    user = cast("User", request.user)
    if request.method == "POST":
        try:
            hit([windows.PASSWORD_CHANGES_OF_PERSON], "password-change", str(user.pk))
        except RateLimitedError as limited:
            return too_many_attempts(request, limited, TOO_MANY)
    view = PasswordChangeView.as_view(
        form_class=partial(OwnPasswordForm, origin=origin_of(request)),
        success_url=reverse("admin:password_change_done"),
        extra_context=context,
    )
    with hashing_for(user):
        response = view(request)
    if isinstance(response, HttpResponseRedirect):
        # This browser's cookie was bound to the old password.
        remember_browser(request, cast("HttpResponse", response), cast("User", request.user))
    return response
