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
from accounts.models.membership import Invitation, Membership, Role
from accounts.models.organisation import Organisation
from accounts.models.pin_challenge import PinChallenge, PinCode, PinTries
from accounts.models.pin_failures import PinFailures
from accounts.models.rate_counter import RateCounter
from accounts.models.revised import Revised
from accounts.models.rotating_secret import RotatingSecret
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
    "RateCounter",
    "Revised",
    "Role",
    "RotatingSecret",
    "SubjectKind",
    "User",
]
