"""Whose secret is this? Every refusal takes as long, and its reason is for the audit only."""

import uuid
from typing import Generic, NamedTuple, TypeVar

from django.conf import settings

from accounts import credentials
from accounts.models import ApiKey, DeviceToken, Organisation, User

Row = TypeVar("Row", ApiKey, DeviceToken)


class Authentication(NamedTuple, Generic[Row]):
    """``row`` is whom the public id names, if anybody; ``refusal`` is empty for a good secret."""

    row: Row | None
    refusal: str


def authenticate_api_key(
    key: str, secret: str, client_address: str, *, is_held: bool = False
) -> Authentication[ApiKey]:
    """``is_held`` locks the key's row: call inside a transaction."""
    if is_held:
        row = ApiKey.objects.select_for_update(of=("self",)).find_by_key(key)
    else:
        row = ApiKey.objects.all().look_up(key)
    if row is None:
        _refusal_of_key(_decoy_key(), secret, client_address)
        return Authentication(None, "unknown-key")
    return Authentication(row, _refusal_of_key(row, secret, client_address))


def _refusal_of_key(row: ApiKey, secret: str, client_address: str) -> str:
    refusals = {
        "wrong-secret": not row.has_secret(secret),
        "revoked": row.revoked_at is not None,
        "expired": row.is_expired,
        "inactive-organisation": not row.organisation.is_active,
        "address-not-allowed": not row.allows(client_address),
    }
    return _first(refusals)


def _decoy_key() -> ApiKey:
    """A key of nobody: to be looked at for as long as a real one."""
    return ApiKey(
        organisation=Organisation(), digest="", pepper_version=next(iter(settings.PEPPERS))
    )


def _decoy_device() -> DeviceToken:
    return DeviceToken(user=User(), digest="", pepper_version=next(iter(settings.PEPPERS)))


def authenticate_device(
    token_id: uuid.UUID, secret: str, stated_email: str, *, is_held: bool = False
) -> Authentication[DeviceToken]:
    """``stated_email`` is canonical, or empty for none; ``is_held`` as for a key."""
    tokens = DeviceToken.objects.select_related("user").filter(pk=token_id)
    row = (tokens.select_for_update(of=("self",)) if is_held else tokens).first()
    if row is None:
        _refusal_of_device(_decoy_device(), secret, stated_email)
        return Authentication(None, "unknown-device")
    return Authentication(row, _refusal_of_device(row, secret, stated_email))


def _refusal_of_device(row: DeviceToken, secret: str, stated_email: str) -> str:
    stored = credentials.Digest(row.digest, row.pepper_version)
    refusals = {
        "wrong-secret": not credentials.matches(secret, stored),
        "revoked": row.revoked_at is not None,
        "inactive-user": not row.user.is_active,
        "inactive-organisation": row.user.is_without_active_organisation(),
        "wrong-email": bool(stated_email) and stated_email != row.user.email,
    }
    return _first(refusals)


def _first(refusals: dict[str, bool]) -> str:
    """The first reason that holds; empty where none does."""
    return next((reason for reason, holds in refusals.items() if holds), "")
