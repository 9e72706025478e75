from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts import credentials
from accounts.audit import record
from accounts.models import ApiKey, AuthEventKind, Organisation, User
from accounts.networks import canonical_networks
from core.http.origin import NOWHERE, Origin


class IssuedApiKey(NamedTuple):
    api_key: ApiKey
    secret: str


def issue_api_key(
    organisation: Organisation,
    *,
    name: str,
    expires_at: datetime | None = None,
    allowed_networks: Sequence[str] = (),
    created_by: User | None = None,
    origin: Origin = NOWHERE,
) -> IssuedApiKey:
    """A new key and its secret, which exists nowhere else and is shown once.

    Raises ``ValidationError`` by field.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError(
            {"expires_at": ValidationError("This time has passed already.", code="invalid")}
        )
    secret = credentials.generate_secret(credentials.SecretKind.API_KEY)
    digest = credentials.digest(secret)
    api_key = ApiKey(
        organisation=organisation,
        name=name.strip(),
        expires_at=expires_at,
        allowed_networks=checked_networks(allowed_networks),
        created_by=created_by,
        digest=digest.value,
        pepper_version=digest.pepper_version,
    )
    api_key.full_clean()
    api_key.save()
    record(
        AuthEventKind.API_KEY_ISSUED,
        origin,
        user=created_by,
        organisation=organisation,
        credential=api_key.key,
    )
    return IssuedApiKey(api_key, secret)


def checked_networks(networks: Sequence[str]) -> list[str]:
    """The networks in canonical form. Raises ``ValidationError`` under the field's name."""
    try:
        return canonical_networks(networks)
    except ValidationError as error:
        raise ValidationError({"allowed_networks": error}) from None
