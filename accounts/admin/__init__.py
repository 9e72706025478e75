"""The admin's pages of accounts. Importing this registers them."""

from accounts.admin import api_keys, devices, organisations, pin_logins, users

__all__ = ["api_keys", "devices", "organisations", "pin_logins", "users"]
