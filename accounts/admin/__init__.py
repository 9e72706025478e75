"""The admin pages of accounts. Importing this package registers them."""

from accounts.admin import (
    auth_events,
    devices,
    invitations,
    logins,
    organisations,
    second_factors,
)
from accounts.admin.api_keys import page as api_keys
from accounts.admin.users import page as users

__all__ = [
    "api_keys",
    "auth_events",
    "devices",
    "invitations",
    "logins",
    "organisations",
    "second_factors",
    "users",
]
