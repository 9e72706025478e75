from sessions_api.models.device_authorization import DeviceAuthorization, DeviceAuthorizationState
from sessions_api.models.session import Credential, Session

__all__ = ["Credential", "DeviceAuthorization", "DeviceAuthorizationState", "Session"]
