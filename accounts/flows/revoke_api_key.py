from django.utils import timezone

from accounts.models import ApiKey


def revoke_api_key(api_key: ApiKey) -> ApiKey:
    """Ends the key and, as every request re-checks it, its sessions. For good; repeatable."""
    if api_key.revoked_at is None:
        api_key.revoked_at = timezone.now()
        api_key.save(update_fields=["revoked_at"])
    return api_key
