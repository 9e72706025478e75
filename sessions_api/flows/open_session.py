"""Opening a session with an API key or a device token."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import actors, credentials
from accounts.audit import Subject, record, record_about
from accounts.email_address import canonical_email
from accounts.flows.authenticate import Refused, authenticate_api_key, authenticate_device
from accounts.models import (
    ApiKey,
    AuditReason,
    AuthEventKind,
    DeviceToken,
    Organisation,
    SubjectKind,
    User,
)
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.database.ids import parse_uuid
from core.http.client_address import network_of
from core.http.origin import Origin
from core.metrics.catalogue import SESSIONS_OPENED, SESSIONS_REFUSED
from core.plain_text import storable
from sessions_api.models import Credential, Session

Row = TypeVar("Row", ApiKey, DeviceToken)


class OpenedSession(NamedTuple):
    session: Session
    token: str


class _Refusal(NamedTuple):
    """Why a login failed; recorded in the audit log, never told to the client."""

    reason: AuditReason
    credential: str = ""
    user: User | None = None
    organisation: Organisation | None = None
    about: Subject | None = None


def open_session(
    *, credential: Credential, uid: str, password: str, email: str, origin: Origin
) -> OpenedSession | None:
    """Returns the new session and its bearer token, or ``None`` for any wrong credential.

    For an API key ``email`` is recorded; for a device token it must be empty or the owner's. After
    too many failures from a client, further failures raise ``RateLimitedError``; a correct
    credential is never refused.
    """
    if credential is Credential.API_KEY:
        outcome = _open_with_api_key(uid, password, email, origin)
    else:
        outcome = _open_with_device_token(uid, password, email, origin)
    if isinstance(outcome, _Refusal):
        SESSIONS_REFUSED.labels(credential.value, outcome.reason).inc()
        # Counting may raise: a flood of failures then does not fill the audit log.
        client = network_of(origin.client_address)
        hit([windows.LOGIN_FAILURES_OF_CLIENT], "login-failure", client)
        _record_refusal(outcome, origin)
        return None
    SESSIONS_OPENED.labels(credential.value).inc()
    _record_opening(outcome.session, uid, origin)
    return outcome


def _record_opening(session: Session, uid: str, origin: Origin) -> None:
    kind = AuthEventKind.SESSION_OPENED
    if session.api_key is not None:
        opener = replace(origin, actor=actors.program(session.api_key))
        record(kind, opener, organisation=session.organisation, credential=uid)
    elif session.user is not None:
        record_about(kind, origin, session.user, credential=uid)


def _record_refusal(refusal: _Refusal, origin: Origin) -> None:
    kind, credential, reason = AuthEventKind.SESSION_REFUSED, refusal.credential, refusal.reason
    if refusal.user is None:
        record(
            kind,
            origin,
            about=refusal.about,
            organisation=refusal.organisation,
            credential=credential,
            reason=reason,
        )
    else:
        record_about(kind, origin, refusal.user, credential=credential, reason=reason)


def _open_with_api_key(
    key: str, secret: str, email: str, origin: Origin
) -> OpenedSession | _Refusal:
    if not credentials.is_well_formed(secret, credentials.SecretKind.API_KEY):
        return _Refusal(AuditReason.MALFORMED_SECRET)
    if not credentials.is_api_key_id(key):
        return _Refusal(AuditReason.MALFORMED_KEY)
    outcome = _authenticate_and_open(
        partial(authenticate_api_key, key, secret, origin.client_address),
        lambda row: Session(api_key=row, email=storable(email)[:254]),
        secret,
        origin,
    )
    if isinstance(outcome, OpenedSession):
        return outcome
    if outcome.row is None:
        return _Refusal(outcome.reason, credential=key, about=Subject(SubjectKind.API_KEY, "", key))
    return _Refusal(
        outcome.reason,
        credential=key,
        organisation=outcome.row.organisation,
        about=Subject.api_key(outcome.row),
    )


def _open_with_device_token(
    token_id: str, secret: str, email: str, origin: Origin
) -> OpenedSession | _Refusal:
    primary_key = parse_uuid(token_id)
    is_well_formed = credentials.is_well_formed(secret, credentials.SecretKind.DEVICE_TOKEN)
    if primary_key is None or not is_well_formed:
        return _Refusal(AuditReason.MALFORMED_SECRET)
    outcome = _authenticate_and_open(
        partial(authenticate_device, primary_key, secret, canonical_email(email)),
        lambda row: Session(device_token=row),
        secret,
        origin,
    )
    if isinstance(outcome, OpenedSession):
        return outcome
    user = None if outcome.row is None else outcome.row.user
    return _Refusal(outcome.reason, credential=token_id, user=user)


def _authenticate_and_open(
    authenticate: Callable[..., Row | Refused[Row]],
    session_of: Callable[[Row], Session],
    secret: str,
    origin: Origin,
) -> OpenedSession | Refused[Row]:
    """Returns the session, or the reason for the refusal, which only the audit log shows.

    If the row changes between authentication and the update that locks it (rotated, revoked, or
    digested with the newest pepper by a concurrent login), it is locked and authenticated again.
    Only logins that would otherwise succeed wait for that lock.
    """
    row = authenticate()
    if isinstance(row, Refused):
        return row
    opened = _open(session_of(row), secret, origin)
    if opened is not None:
        return opened
    with transaction.atomic():
        row = authenticate(locked=True)
        if isinstance(row, Refused):
            return row
        opened = _open(session_of(row), secret, origin)
    return opened or Refused(AuditReason.CHANGED, row)


@transaction.atomic
def _open(session: Session, secret: str, origin: Origin) -> OpenedSession | None:
    now = timezone.now()
    if not _lock_credential(session, secret, origin, now):
        return None
    _end_surplus_sessions(session)
    token = credentials.generate_secret(credentials.SecretKind.SESSION)
    session.digest = credentials.digest(token).value
    session.client_address = origin.client_address or None
    session.created_at = session.last_used_at = now
    session.expires_at = session.expiry_after_use_at(now)
    session.save(force_insert=True)
    return OpenedSession(session, token)


def _lock_credential(session: Session, secret: str, origin: Origin, now: datetime) -> bool:
    """Records the use, which locks the credential's row.

    Returns ``False`` if the row was digested again, rotated or revoked since it was read.
    """
    if session.api_key is not None:
        key = session.api_key
        keys = ApiKey.objects.filter(pk=key.pk, digest=key.digest, revoked_at__isnull=True)
        used = {"last_used_at": now, "last_used_from": origin.client_address or None}
        return keys.update(**used, **_renewed_digest(key, secret)) == 1
    if session.device_token is not None:
        token = session.device_token
        tokens = DeviceToken.objects.filter(
            pk=token.pk, digest=token.digest, revoked_at__isnull=True
        )
        return tokens.update(last_used_at=now, **_renewed_digest(token, secret)) == 1
    return False


def _renewed_digest(credential: ApiKey | DeviceToken, secret: str) -> dict[str, Any]:
    """The columns for a digest with the newest pepper; empty if the stored digest uses it."""
    stored = credentials.Digest(credential.digest, credential.pepper_version)
    renewed = credentials.digest(secret)
    if renewed.pepper_version == stored.pepper_version or not credentials.matches(secret, stored):
        return {}
    return {"digest": renewed.value, "pepper_version": renewed.pepper_version}


def _end_surplus_sessions(session: Session) -> None:
    """Ends the least recently used sessions so that the new one stays within the cap."""
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
