"""Whose secret is this? Every refusal takes as long, and its reason is for the audit only."""

import uuid
from typing import Generic, NamedTuple, TypeVar

from accounts import credentials
from accounts.models import ApiKey, DeviceToken

Row = TypeVar("Row", ApiKey, DeviceToken)


class Authentication(NamedTuple, Generic[Row]):
    """``row`` is whom the public id names, if anybody; ``refusal`` is empty for a good secret."""

    row: Row | None
    refusal: str


def authenticate_api_key(key: str, secret: str, client_address: str) -> Authentication[ApiKey]:
    row = ApiKey.objects.find_by_key(key)
    if row is None:
        credentials.matches(secret, None)
        credentials.matches(secret, None)
        return Authentication(None, "unknown-key")
    refusals = {
        "wrong-secret": not row.has_secret(secret),
        "revoked": row.revoked_at is not None,
        "expired": row.is_expired,
        "inactive-organisation": not row.organisation.is_active,
        "address-not-allowed": not row.allows(client_address),
    }
    return Authentication(row, _first(refusals))


def authenticate_device(
    token_id: uuid.UUID, secret: str, stated_email: str
) -> Authentication[DeviceToken]:
    """``stated_email`` is canonical, or empty for none."""
    row = DeviceToken.objects.select_related("user").filter(pk=token_id).first()
    stored = None if row is None else credentials.Digest(row.digest, row.pepper_version)
    is_right = credentials.matches(secret, stored)
    if row is None:
        return Authentication(None, "unknown-device")
    refusals = {
        "wrong-secret": not is_right,
        "revoked": row.revoked_at is not None,
        "inactive-user": not row.user.is_active,
        "wrong-email": bool(stated_email) and stated_email != row.user.email,
    }
    return Authentication(row, _first(refusals))


def _first(refusals: dict[str, bool]) -> str:
    """The first reason that holds; empty where none does."""
    return next((reason for reason, holds in refusals.items() if holds), "")
