"""POST /session: a credential becomes a session."""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.email_address import canonical_email
from accounts.ids import parse_uuid
from accounts.models import ApiKey, DeviceToken
from sessions_api.models import Credential, Session


class OpenedSession(NamedTuple):
    session: Session
    token: str


def open_session(
    *, credential: Credential, uid: str, password: str, email: str, client_address: str
) -> OpenedSession | None:
    """The new session and its bearer token, shown once; ``None`` for any wrong credential.

    ``email`` is recorded for an API key, and must be the owner's for a device token when given.
    """
    if credential is Credential.API_KEY:
        return _open_with_api_key(uid, password, email, client_address)
    return _open_with_device_token(uid, password, email, client_address)


def _open_with_api_key(
    key: str, secret: str, email: str, client_address: str
) -> OpenedSession | None:
    if not credentials.is_well_formed(secret, credentials.SecretKind.API_KEY):
        return None
    api_key = ApiKey.objects.authenticate(key, secret)
    if api_key is None:
        return None
    return _open(Session(api_key=api_key, email=email[:254]), client_address)


def _open_with_device_token(
    token_id: str, secret: str, email: str, client_address: str
) -> OpenedSession | None:
    if not credentials.is_well_formed(secret, credentials.SecretKind.DEVICE_TOKEN):
        return None
    primary_key = parse_uuid(token_id)
    if primary_key is None:
        return None
    device_token = DeviceToken.objects.authenticate(primary_key, secret)
    if device_token is None:
        return None
    if email and canonical_email(email) != device_token.user.email:
        return None
    return _open(Session(device_token=device_token), client_address)


@transaction.atomic
def _open(session: Session, client_address: str) -> OpenedSession | None:
    now = timezone.now()
    if not _hold_credential(session, now):
        return None
    _make_room(session)
    token = credentials.generate_secret(credentials.SecretKind.SESSION)
    session.digest = credentials.digest(token).value
    session.client_address = client_address or None
    session.created_at = session.last_used_at = now
    session.expires_at = session.expiry_after_use_at(now)
    session.save(force_insert=True)
    return OpenedSession(session, token)


def _hold_credential(session: Session, now: datetime) -> bool:
    """Notes the use and, by that, locks the credential's row; false if it was just revoked."""
    if session.api_key is not None:
        keys = ApiKey.objects.filter(pk=session.api_key.pk, revoked_at__isnull=True)
        return keys.update(last_used_at=now) == 1
    if session.device_token is not None:
        tokens = DeviceToken.objects.filter(pk=session.device_token.pk, revoked_at__isnull=True)
        return tokens.update(last_used_at=now) == 1
    return False


def _make_room(session: Session) -> None:
    """Ends the sessions unused longest, so that with the new one the credential's cap holds."""
    if session.api_key is not None:
        siblings = Session.objects.filter(api_key=session.api_key)
        cap = settings.SESSIONS_PER_API_KEY
    else:
        siblings = Session.objects.filter(device_token=session.device_token)
        cap = settings.SESSIONS_PER_DEVICE_TOKEN
    siblings.filter(expires_at__lte=timezone.now()).delete()
    surplus = siblings.order_by("-last_used_at", "-id").values_list("pk", flat=True)[cap - 1 :]
    if surplus:
        Session.objects.filter(pk__in=list(surplus)).delete()
