"""The admin's pages of accounts. Importing this registers them."""

from accounts.admin import (
    api_keys,
    auth_events,
    devices,
    invitations,
    login_failures,
    organisations,
    pin_logins,
    second_factors,
    users,
)

__all__ = [
    "api_keys",
    "auth_events",
    "devices",
    "invitations",
    "login_failures",
    "organisations",
    "pin_logins",
    "second_factors",
    "users",
]
