"""One's own password: whoever sits at an open session may not guess it there."""

from collections.abc import Callable
from typing import cast

from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.admin.too_many_attempts import too_many_attempts
from accounts.errors import RateLimitedError
from accounts.models import User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from config.admin_known_browser import remember_browser

TOO_MANY = "Passwords were changed, or mistyped, too often."


def change_own_password(request: HttpRequest, change: Callable[[], HttpResponse]) -> HttpResponse:
    user = cast("User", request.user)
    if request.method == "POST" and site.has_permission(request):
        try:
            hit([windows.PASSWORD_CHANGES_OF_PERSON], "password-change", str(user.pk))
        except RateLimitedError as limited:
            return too_many_attempts(request, limited, TOO_MANY)
    response = change()
    if isinstance(response, HttpResponseRedirect) and site.has_permission(request):
        # The old password's cookie is good no more.
        remember_browser(request, response, user)
    return response
