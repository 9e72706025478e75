"""Checks a public id and secret. Refusals take the same time; the audit log has their reasons."""

import uuid
from typing import Generic, NamedTuple, TypeVar

from accounts import credentials
from accounts.models import ApiKey, AuditReason, DeviceToken, Organisation, User
from accounts.models.api_key import look_up_api_key

Row = TypeVar("Row", ApiKey, DeviceToken)


class RefusedLogin(NamedTuple, Generic[Row]):
    """A refused credential; ``row`` is the one with its public id, if there is one."""

    reason: AuditReason
    row: Row | None = None


def authenticate_api_key(
    key: str, secret: str, client_address: str, *, locked: bool = False
) -> ApiKey | RefusedLogin[ApiKey]:
    """The API key, or why it is refused.

    ``locked`` locks the key's row; call it inside a transaction then.
    """
    if locked:
        row = ApiKey.objects.select_for_update(of=("self",)).find_by_key(key)
    else:
        row = look_up_api_key(key)
    if row is None:
        _refusal_of_key(_decoy_key(), secret, client_address)
        return RefusedLogin(AuditReason.UNKNOWN_KEY)
    reason = _refusal_of_key(row, secret, client_address)
    return row if reason is None else RefusedLogin(reason, row)


def authenticate_device(
    token_id: uuid.UUID, secret: str, stated_email: str, *, locked: bool = False
) -> DeviceToken | RefusedLogin[DeviceToken]:
    """The device's token, or why it is refused.

    ``stated_email`` is canonical, or empty for none; ``locked`` as for an API key.
    """
    tokens = DeviceToken.objects.select_related("user").filter(pk=token_id)
    row = (tokens.select_for_update(of=("self",)) if locked else tokens).first()
    if row is None:
        _refusal_of_device(_decoy_device(), secret, stated_email)
        return RefusedLogin(AuditReason.UNKNOWN_DEVICE)
    reason = _refusal_of_device(row, secret, stated_email)
    return row if reason is None else RefusedLogin(reason, row)


def _refusal_of_key(row: ApiKey, secret: str, client_address: str) -> AuditReason | None:
    return _first(
        {
            AuditReason.WRONG_SECRET: not row.has_secret(secret),
            AuditReason.REVOKED: row.revoked_at is not None,
            AuditReason.EXPIRED: row.is_expired,
            AuditReason.INACTIVE_ORGANISATION: not row.organisation.is_active,
            AuditReason.APPROVER_GONE: row.has_lost_approver,
            AuditReason.ADDRESS_NOT_ALLOWED: not row.allows(client_address),
        }
    )


def _refusal_of_device(row: DeviceToken, secret: str, stated_email: str) -> AuditReason | None:
    stored = credentials.Digest(row.digest, row.pepper_version)
    is_other_email = bool(stated_email) and stated_email != row.user.email
    return _first(
        {
            AuditReason.WRONG_SECRET: not credentials.matches(secret, stored),
            AuditReason.REVOKED: row.revoked_at is not None,
            AuditReason.INACTIVE_USER: not row.user.is_active,
            AuditReason.INACTIVE_ORGANISATION: row.user.is_without_active_organisation(),
            AuditReason.WRONG_EMAIL: is_other_email,
        }
    )


def _first(checks: dict[AuditReason, bool]) -> AuditReason | None:
    """The first reason that applies. All are evaluated, so that each refusal takes as long."""
    return next((reason for reason, applies in checks.items() if applies), None)


def _decoy_key() -> ApiKey:
    """Stands in for an unknown key, so that refusing it takes as long."""
    return ApiKey(
        organisation=Organisation(), digest="", pepper_version=credentials.newest_pepper()
    )


def _decoy_device() -> DeviceToken:
    """Stands in for an unknown device, so that refusing it takes as long."""
    return DeviceToken(user=User(), digest="", pepper_version=credentials.newest_pepper())
