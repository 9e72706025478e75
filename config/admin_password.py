"""A person changes their own password."""

from typing import Any

from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from unfold.forms import AdminOwnPasswordChangeForm


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """Saves the password and nothing else.

    Django saves the whole user as it was read before both hashes: a deactivation or a lost right
    of that moment would be undone.
    """

    def set_password_and_save(self, user: Any, *arguments: Any, **options: Any) -> Any:
        super().set_password_and_save(user, *arguments, **{**options, "commit": False})
        user.save(update_fields=["password"])
        return user


def change_password(request: HttpRequest, context: dict[str, Any]) -> HttpResponseBase:
    """Ends the person's other logins to the admin, whose sessions are bound to the password."""
    view = PasswordChangeView.as_view(
        form_class=OwnPasswordForm,
        success_url=reverse("admin:password_change_done"),
        extra_context=context,
    )
    return view(request)
