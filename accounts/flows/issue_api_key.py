from datetime import datetime
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts import credentials
from accounts.models import ApiKey, Organisation, User


class IssuedApiKey(NamedTuple):
    api_key: ApiKey
    secret: str


def issue_api_key(
    organisation: Organisation,
    *,
    name: str,
    expires_at: datetime | None = None,
    created_by: User | None = None,
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
        created_by=created_by,
        digest=digest.value,
        pepper_version=digest.pepper_version,
    )
    api_key.full_clean()
    api_key.save()
    return IssuedApiKey(api_key, secret)
