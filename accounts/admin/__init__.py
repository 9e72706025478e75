"""The admin pages of accounts. Importing this package registers them."""

from accounts.admin import (
    api_keys,
    auth_events,
    devices,
    invitations,
    logins,
    organisations,
)
from accounts.admin.users import page as users

__all__ = [
    "api_keys",
    "auth_events",
    "devices",
    "invitations",
    "logins",
    "organisations",
    "users",
]
