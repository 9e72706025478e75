"""Creating, rotating and revoking API keys."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.audit import Ended, Subject, record, record_ends
from accounts.flows.room import check_room
from accounts.models import ApiKey, AuthEventKind, Organisation, User
from accounts.models.rotating_secret import validated_overlap
from accounts.networks import canonical_networks
from core.errors import ForbiddenError
from core.http.origin import NOWHERE, Origin

_DAY = timedelta(days=1)
# As a multiple of the keys that an organisation may have.
_ISSUES_A_DAY = 10


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
    """Creates a key; its secret is returned here only, and never stored.

    Raises ``ValidationError`` by field or ``LimitExceededError``.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError(
            {"expires_at": ValidationError("This time has passed.", code="invalid")}
        )
    api_key = ApiKey(
        organisation=organisation,
        name=name.strip(),
        expires_at=expires_at,
        allowed_networks=checked_networks(allowed_networks),
        created_by=created_by,
    )
    secret = api_key.renew_secret()
    api_key.full_clean()
    with transaction.atomic():
        every, most = (
            ApiKey.objects.filter(organisation=organisation),
            settings.API_KEYS_PER_ORGANISATION,
        )
        check_room(organisation.pk, every.filter(revoked_at__isnull=True), most, "API keys")
        # Revoked keys keep their rows, because runs and versions name them.
        issued = every.filter(created_at__gt=timezone.now() - _DAY)
        check_room(
            organisation.pk, issued, _ISSUES_A_DAY * most, "API keys that were issued within a day"
        )
        api_key.save()
    record(
        AuthEventKind.API_KEY_ISSUED,
        origin,
        by=created_by,
        about=Subject.api_key(api_key),
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


def rotate_api_key(
    api_key: ApiKey, *, overlap_seconds: int = 0, origin: Origin, by: User | None = None
) -> IssuedApiKey:
    """Gives the key a new secret; the old one stays valid for the overlap, 0 to 7 days.

    Open sessions stay open; if the secret has leaked, revoke the key instead. Raises
    ``ValidationError`` by field, and ``ForbiddenError`` for a revoked key.
    """
    issued = _rotate(api_key, validated_overlap(overlap_seconds))
    record(
        AuthEventKind.API_KEY_ROTATED,
        origin,
        by=by,
        about=Subject.api_key(issued.api_key),
        organisation=issued.api_key.organisation,
        credential=issued.api_key.key,
    )
    return issued


@transaction.atomic
def _rotate(stale: ApiKey, overlap: timedelta) -> IssuedApiKey:
    rows = ApiKey.objects.select_for_update(of=("self",)).select_related("organisation")
    api_key = rows.get(pk=stale.pk)
    if api_key.revoked_at is not None:
        raise ForbiddenError("This key is revoked. Create a new one.")
    return IssuedApiKey(api_key, api_key.rotate_secret(overlap))


def revoke_api_key(api_key: ApiKey, *, origin: Origin = NOWHERE, by: User | None = None) -> ApiKey:
    """Revokes the key for good, and with it its sessions, which every request checks again."""
    revoke_api_keys([api_key], origin=origin, by=by)
    api_key.refresh_from_db(fields=["revoked_at"])
    return api_key


def revoke_api_keys(
    api_keys: Iterable[ApiKey], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[ApiKey]:
    """Revokes several keys in a fixed number of queries; returns those not revoked before."""
    asked = [api_key.pk for api_key in api_keys]
    with transaction.atomic():
        good = list(
            ApiKey.objects.select_for_update()
            .filter(pk__in=asked, revoked_at__isnull=True)
            .order_by("pk")
        )
        revoked = ApiKey.objects.filter(pk__in=[api_key.pk for api_key in good])
        revoked.update(revoked_at=timezone.now())
    record_ends(
        AuthEventKind.API_KEY_REVOKED,
        origin,
        [
            Ended(Subject.api_key(api_key), api_key.organisation_id, api_key.key, by=by)
            for api_key in good
        ],
    )
    return good
