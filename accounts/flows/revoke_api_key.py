from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from accounts.audit import Ended, record_ends
from accounts.models import ApiKey, AuthEventKind, User
from core.http.origin import NOWHERE, Origin


def revoke_api_key(api_key: ApiKey, *, origin: Origin = NOWHERE, by: User | None = None) -> ApiKey:
    """Ends the key and, as every request re-checks it, its sessions. For good; repeatable."""
    revoke_api_keys([api_key], origin=origin, by=by)
    api_key.refresh_from_db(fields=["revoked_at"])
    return api_key


def revoke_api_keys(
    api_keys: Iterable[ApiKey], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[ApiKey]:
    """Likewise, in as many queries for many as for one.

    Answers those that it revoked: not those that were revoked already.
    """
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
        [Ended(api_key.key, api_key.organisation_id, by=by) for api_key in good],
    )
    return good
