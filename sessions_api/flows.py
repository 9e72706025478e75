"""Opening a session with an API key or a device token, using it, and ending it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.addresses import canonical_email
from accounts.audit import Ended, Subject, program, record, record_ends
from accounts.flows.api_keys import IssuedApiKey
from accounts.flows.authenticate import RefusedLogin, authenticate_api_key, authenticate_device
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
from core.database.batches import delete_in_batches
from core.database.ids import parse_uuid
from core.http.origin import NOWHERE, Origin, network_of
from core.plain_text import storable
from sessions_api.metrics import SESSIONS_OPENED, SESSIONS_REFUSED
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
    record_opening(outcome.session, uid, origin)
    return outcome


def record_opening(session: Session, uid: str, origin: Origin) -> None:
    SESSIONS_OPENED.labels(session.credential.value).inc()
    kind = AuthEventKind.SESSION_OPENED
    if session.api_key is not None:
        opener = replace(origin, actor=program(session.api_key))
        record(kind, opener, organisation=session.organisation, credential=uid)
    elif session.user is not None:
        record(kind, origin, user=session.user, credential=uid)


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
        record(kind, origin, user=refusal.user, credential=credential, reason=reason)


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
    authenticate: Callable[..., Row | RefusedLogin[Row]],
    session_of: Callable[[Row], Session],
    secret: str,
    origin: Origin,
) -> OpenedSession | RefusedLogin[Row]:
    """Returns the session, or the reason for the refusal, which only the audit log shows.

    If the row changes between authentication and the update that locks it (rotated, revoked, or
    digested with the newest pepper by a concurrent login), it is locked and authenticated again.
    Only logins that would otherwise succeed wait for that lock.
    """
    row = authenticate()
    if isinstance(row, RefusedLogin):
        return row
    opened = _open(session_of(row), secret, origin)
    if opened is not None:
        return opened
    with transaction.atomic():
        row = authenticate(locked=True)
        if isinstance(row, RefusedLogin):
            return row
        opened = _open(session_of(row), secret, origin)
    return opened or RefusedLogin(AuditReason.CHANGED, row)


def open_first_session(issued: IssuedApiKey, origin: Origin) -> OpenedSession:
    """Opens a session of a key that the same transaction has made; the caller records it."""
    opened = _open(Session(api_key=issued.api_key), issued.secret, origin)
    if opened is None:
        raise RuntimeError("A new key was changed by somebody else.")
    return opened


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


def use_session(token: str, client_address: str) -> Session | None:
    """Returns the live session with this token, and records its use; ``None`` if there is none.

    A session of an API key is valid only from the key's allowed networks.
    """
    session = Session.objects.find_live(token)
    if session is None:
        return None
    if session.api_key is not None and not session.api_key.allows(client_address):
        return None
    _record_use(session, token)
    return session


def _record_use(session: Session, token: str) -> None:
    """Extends the idle limit, with at most one write per ``SESSION_USE_WRITTEN_EVERY``.

    The write also stores a digest with the newest pepper. If the clock was set back since the
    session was opened, its limits count from now; otherwise they would end too late.
    """
    now, read_at = timezone.now(), session.last_used_at
    if abs(now - read_at) < settings.SESSION_USE_WRITTEN_EVERY:
        return
    session.created_at = min(session.created_at, now)
    session.last_used_at = now
    session.expires_at = session.expiry_after_use_at(now)
    Session.objects.filter(pk=session.pk, last_used_at=read_at).update(
        created_at=session.created_at,
        last_used_at=now,
        expires_at=session.expires_at,
        digest=credentials.digest(token).value,
    )


def end_session(session: Session, *, origin: Origin = NOWHERE) -> None:
    """Ends one session; see ``end_sessions``."""
    end_sessions([session], origin=origin)


def end_sessions(
    sessions: Iterable[Session], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[Session]:
    """Ends the sessions immediately and returns those that were still open.

    The keys or device tokens that opened them stay valid. The audit log names ``by``, the
    administrator, or else the owner. The number of queries does not depend on the number of
    sessions.
    """
    requested = [session.pk for session in sessions]
    with transaction.atomic():
        still_open = list(
            Session.objects.select_for_update(of=("self",))
            .with_owners()
            .filter(pk__in=requested)
            .order_by("pk")
        )
        Session.objects.filter(pk__in=[session.pk for session in still_open]).delete()
    record_ends(
        AuthEventKind.SESSION_ENDED,
        origin,
        [_ended(session, by) for session in still_open],
    )
    return still_open


def end_expired_sessions() -> int:
    """Delete expired sessions by ``expires_at``, which is indexed; few sessions have expired."""
    expired = Session.objects.filter(expires_at__lte=timezone.now())
    return delete_in_batches(expired, order=("expires_at",))


def _ended(session: Session, by: User | None) -> Ended:
    api_key, owner = session.api_key, session.user
    if owner is not None:
        about = Subject(SubjectKind.SESSION, session.pk, owner.email)
        return Ended(about, owner.tenant_id, session.pk, owner=owner, by=by)
    about = Subject(SubjectKind.SESSION, session.pk, "" if api_key is None else api_key.name)
    return Ended(about, None if api_key is None else api_key.organisation_id, session.pk, by=by)
