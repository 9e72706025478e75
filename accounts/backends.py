"""The authentication backend of the admin's login form."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from accounts.email_address import canonical_email
from accounts.models import User


class CanonicalEmailBackend(ModelBackend):
    """Django's backend, with the typed e-mail converted to its canonical form."""

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
