from accounts.models.api_key import ApiKey
from accounts.models.auth_event import (
    HIDDEN_ACTORS,
    ActorKind,
    AuditReason,
    AuthEvent,
    AuthEventKind,
    SubjectKind,
)
from accounts.models.device_token import DeviceToken
from accounts.models.invitation import Invitation
from accounts.models.membership import Membership, Role
from accounts.models.organisation import Organisation
from accounts.models.pin_challenge import PinChallenge, PinCode
from accounts.models.pin_failures import PinFailures
from accounts.models.pin_tries import PinTries
from accounts.models.rate_window import RateWindow
from accounts.models.rotating_secret import RotatingSecret
from accounts.models.run_storage import RunStorage
from accounts.models.token_bucket import TokenBucket
from accounts.models.user import User

__all__ = [
    "HIDDEN_ACTORS",
    "ActorKind",
    "ApiKey",
    "AuditReason",
    "AuthEvent",
    "AuthEventKind",
    "DeviceToken",
    "Invitation",
    "Membership",
    "Organisation",
    "PinChallenge",
    "PinCode",
    "PinFailures",
    "PinTries",
    "RateWindow",
    "Role",
    "RotatingSecret",
    "RunStorage",
    "SubjectKind",
    "TokenBucket",
    "User",
]
