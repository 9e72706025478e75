"""The errors of OAuth's endpoints (RFC 6749, 5.2, and RFC 8628, 3.5)."""

from enum import StrEnum


class OAuthErrorCode(StrEnum):
    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    INVALID_SCOPE = "invalid_scope"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    AUTHORIZATION_PENDING = "authorization_pending"
    SLOW_DOWN = "slow_down"
    ACCESS_DENIED = "access_denied"
    EXPIRED_TOKEN = "expired_token"  # noqa: S105


class OAuthError(Exception):
    """A request that OAuth refuses. ``description`` is ASCII, for the program's developer."""

    def __init__(self, code: OAuthErrorCode, description: str) -> None:
        super().__init__(code)
        self.code = code
        self.description = description
