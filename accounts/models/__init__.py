from accounts.models.api_key import ApiKey
from accounts.models.device_token import DeviceToken
from accounts.models.membership import Membership, Role
from accounts.models.organisation import Organisation
from accounts.models.pin_challenge import PinChallenge, PinCode
from accounts.models.pin_failures import PinFailures
from accounts.models.user import User

__all__ = [
    "ApiKey",
    "DeviceToken",
    "Membership",
    "Organisation",
    "PinChallenge",
    "PinCode",
    "PinFailures",
    "Role",
    "User",
]
