"""The admin's pages of accounts. Importing this registers them."""

from accounts.admin import (
    api_keys,
    auth_events,
    devices,
    invitations,
    logins,
    organisations,
    second_factors,
)
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
