from django.utils import timezone

from accounts.audit import record
from accounts.models import ApiKey, AuthEventKind, User
from config.http.origin import NOWHERE, Origin


def revoke_api_key(api_key: ApiKey, *, origin: Origin = NOWHERE, by: User | None = None) -> ApiKey:
    """Ends the key and, as every request re-checks it, its sessions. For good; repeatable."""
    if api_key.revoked_at is None:
        api_key.revoked_at = timezone.now()
        api_key.save(update_fields=["revoked_at"])
        record(
            AuthEventKind.API_KEY_REVOKED,
            origin,
            user=by,
            organisation=api_key.organisation,
            credential=api_key.key,
        )
    return api_key
