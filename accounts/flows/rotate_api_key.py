from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.audit import record
from accounts.flows.issue_api_key import IssuedApiKey
from accounts.flows.overlap import checked_overlap
from accounts.models import ApiKey, AuthEventKind, User
from core.errors import ForbiddenError
from core.http.origin import Origin


def rotate_api_key(
    api_key: ApiKey, *, overlap_seconds: int = 0, origin: Origin, by: User | None = None
) -> IssuedApiKey:
    """A new secret for the key; the old one is good for the overlap, 0 to 7 days.

    Sessions that are open stay open: whoever fears that the secret leaked revokes the key.
    Raises ``ValidationError`` by field, and ``ForbiddenError`` for a revoked key.
    """
    overlap = checked_overlap(overlap_seconds)
    secret = credentials.generate_secret(credentials.SecretKind.API_KEY)
    api_key = _rotate(api_key, credentials.digest(secret), overlap)
    record(
        AuthEventKind.API_KEY_ROTATED,
        origin,
        user=by,
        organisation=api_key.organisation,
        credential=api_key.key,
    )
    return IssuedApiKey(api_key, secret)


@transaction.atomic
def _rotate(stale: ApiKey, digest: credentials.Digest, overlap: timedelta) -> ApiKey:
    """The row is held, so that of two rotations at once the later takes over the earlier's."""
    api_key = (
        ApiKey.objects.select_for_update(of=("self",))
        .select_related("organisation")
        .get(pk=stale.pk)
    )
    if api_key.revoked_at is not None:
        raise ForbiddenError("This key is revoked. Issue a new one.")
    api_key.previous_digest = api_key.digest
    api_key.previous_pepper_version = api_key.pepper_version
    api_key.previous_valid_until = timezone.now() + overlap
    api_key.digest, api_key.pepper_version = digest.value, digest.pepper_version
    api_key.save(
        update_fields=[
            "digest",
            "pepper_version",
            "previous_digest",
            "previous_pepper_version",
            "previous_valid_until",
        ]
    )
    return api_key
