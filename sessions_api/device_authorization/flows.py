"""Starting a program's login, answering it, and redeeming the answer for a key.

Device codes are kept by programs, user codes are typed by people. What goes wrong are the errors of
OAuth's endpoints (RFC 6749, 5.2, and RFC 8628, 3.5).
"""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, cast
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.audit import Subject, record
from accounts.flows.api_keys import IssuedApiKey, add_api_key, checked_scopes, record_issue
from accounts.flows.minting import Maker
from accounts.flows.notices import send_program_login_notice
from accounts.messages.quotas import may_send_mail
from accounts.models import ApiKey, AuditReason, AuthEventKind, Membership, Organisation, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import Count, CountFullError, claim, hit, is_first
from accounts.scopes import Scope, Scopes, in_order, missing, names_of, scopes_named, shared
from core.database.batches import delete_in_batches
from core.errors import ForbiddenError, LimitExceededError
from core.http.origin import Origin, network_of
from core.plain_text import storable
from sessions_api.audit_kinds import ProgramLoginEvent, ProgramLoginSubject
from sessions_api.flows import OpenedSession, open_first_session, record_opening
from sessions_api.models import DeviceAuthorization, DeviceAuthorizationState
from sessions_api.models.device_authorization import (
    MAX_CLIENT_ID_LENGTH,
    device_code_material,
    user_code_material,
)

# Consonants that do not look alike and form no words (RFC 8628, 6.1): 34 bits in eight of them.
_USER_CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
_USER_CODE_LENGTH = 8
_USER_CODE = re.compile(rf"[{_USER_CODE_ALPHABET}]{{{_USER_CODE_LENGTH}}}")
_DEVICE_CODE_BYTES = 32


class OAuthErrorCode(StrEnum):
    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    INVALID_SCOPE = "invalid_scope"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    AUTHORIZATION_PENDING = "authorization_pending"
    SLOW_DOWN = "slow_down"
    ACCESS_DENIED = "access_denied"
    EXPIRED_TOKEN = "expired_token"  # noqa: S105


class OAuthError(Exception):
    """A request that OAuth refuses. ``description`` is ASCII, for the program's developer."""

    def __init__(self, code: OAuthErrorCode, description: str) -> None:
        super().__init__(code)
        self.code = code
        self.description = description


def generate_device_code() -> str:
    """256 random bits, as 43 characters that need no escaping in a form."""
    return secrets.token_urlsafe(_DEVICE_CODE_BYTES)


def generate_user_code() -> str:
    return "".join(secrets.choice(_USER_CODE_ALPHABET) for _ in range(_USER_CODE_LENGTH))


def shown(user_code: str) -> str:
    """The code in two groups: ``WDJB-MJHT``."""
    return f"{user_code[:4]}-{user_code[4:]}"


def typed_user_code(text: str) -> str | None:
    """The code as it was generated, from lower case and any grouping; ``None`` for no code."""
    code = re.sub(r"[\s\-–_.]", "", text).upper()
    return code if _USER_CODE.fullmatch(code) else None


DEFAULT_SCOPES: Scopes = frozenset({Scope.READ_SCRIPTS})
# Programs that poll late learn that they were too late, instead of that the code is unknown.
_KEPT_AFTER_EXPIRY = timedelta(hours=1)
_ANSWERED = "This login was already answered, or has expired."


class StartedLogin(NamedTuple):
    row: DeviceAuthorization
    device_code: str
    user_code: str


class LoggedIn(NamedTuple):
    """What a program gets: a key with its secret, and a session of it."""

    issued: IssuedApiKey
    opened: OpenedSession


def start_login(client_id: str, scope: str, origin: Origin) -> StartedLogin:
    """Starts a login for a program that calls itself ``client_id``.

    ``scope`` has names separated by blanks; empty for ``DEFAULT_SCOPES``. Raises ``OAuthError``,
    and ``RateLimitedError`` for a client with too many.
    """
    checked_client_id(client_id)
    names = [name for name in scope.split(" ") if name]
    if unknown := set(names) - set(Scope.values):
        listed = ", ".join(Scope.values)
        raise OAuthError(
            OAuthErrorCode.INVALID_SCOPE,
            f"{len(unknown)} of the scopes do not exist. There are: {listed}.",
        )
    asked = scopes_named(names) or DEFAULT_SCOPES
    hit([windows.DEVICE_LOGINS_OF_CLIENT], "device-login", network_of(origin.client_address))
    device_code, user_code = generate_device_code(), generate_user_code()
    now = timezone.now()
    row = DeviceAuthorization.objects.create(
        device_digest=credentials.digest(device_code_material(device_code)).value,
        user_digest=credentials.digest(user_code_material(user_code)).value,
        client_id=client_id,
        scopes=[each.value for each in in_order(asked)],
        client_address=origin.client_address or None,
        user_agent=storable(origin.user_agent),
        created_at=now,
        expires_at=now + settings.DEVICE_CODE_LIFETIME,
        interval_seconds=settings.DEVICE_CODE_INTERVAL_SECONDS,
    )
    return StartedLogin(row, device_code, user_code)


def checked_client_id(client_id: str) -> str:
    """Raises ``OAuthError`` unless these are 1 to 64 printable ASCII characters (RFC 6749, A.1)."""
    is_printable = client_id.isascii() and client_id.isprintable()
    if not is_printable or not client_id.strip() or len(client_id) > MAX_CLIENT_ID_LENGTH:
        raise OAuthError(
            OAuthErrorCode.INVALID_CLIENT,
            f"client_id must be 1 to {MAX_CLIENT_ID_LENGTH} printable ASCII characters.",
        )
    return client_id


# --- The person ----------------------------------------------------------------------------------


def find_login(user: User, typed: str, origin: Origin) -> DeviceAuthorization | None:
    """The login that waits under the typed user code; ``None`` for a wrong one.

    Wrong codes are counted before they are looked up, for the person and for the client address:
    after too many, right ones are refused too, with ``RateLimitedError``. Unknown, expired and
    answered codes look the same.
    """
    client = network_of(origin.client_address)
    counts = (
        Count(windows.WRONG_USER_CODES_OF_PERSON, ("user-code-of", str(user.pk))),
        Count(windows.WRONG_USER_CODES_AT_CLIENT, ("user-code-at", client)),
    )
    try:
        claimed = claim(counts)
    except CountFullError as full:
        if is_first(full.count.window, *full.count.identifiers):
            record(AuthEventKind.RATE_LIMITED, origin, user=user, reason=AuditReason.USER_CODES)
        raise
    code = typed_user_code(typed)
    row = DeviceAuthorization.objects.all().find_by_user_code(code or "")
    if row is not None:
        claimed.give_back()
    return row


def approve_login(
    row: DeviceAuthorization,
    *,
    organisation: Organisation,
    scopes: Sequence[str],
    key_name: str,
    days: int,
    by: User,
    origin: Origin,
) -> None:
    """Lets the program have a key of the organisation, for ``days``.

    Raises ``ValidationError`` by field, ``BeyondMakerError`` for scopes that the person does not
    have, and ``ForbiddenError`` if the login was answered meanwhile, has expired, or did not ask
    for a scope.
    """
    granted = checked_scopes(scopes)
    if not 1 <= days <= settings.DEVICE_KEY_MAX_DAYS:
        most = settings.DEVICE_KEY_MAX_DAYS
        raise ValidationError(
            {"days": ValidationError(f"Choose 1 to {most} days.", code="invalid")}
        )
    if missing(row.held_scopes, granted):
        raise ForbiddenError("The program did not ask for all of these scopes.")
    if not organisation.is_active:
        raise ForbiddenError("This organisation is inactive.")
    Maker.person(by, organisation).gives(granted, "scopes")
    key = _key_of(organisation, key_name, by, granted, timezone.now() + timedelta(days=days))
    key.clean_fields(exclude=["digest", "pepper_version"])
    _answer(
        row,
        state=DeviceAuthorizationState.APPROVED,
        answered_by=by,
        answered_at=timezone.now(),
        organisation=organisation,
        scopes=key.scopes,
        key_name=key.name,
        key_expires_at=key.expires_at,
    )
    _record_answer(
        ProgramLoginEvent.APPROVED, row, by, origin, organisation, reason=names_of(granted)
    )


def refuse_login(row: DeviceAuthorization, *, by: User, origin: Origin) -> None:
    """Raises ``ForbiddenError`` if the login was answered meanwhile, or has expired."""
    _answer(row, state=DeviceAuthorizationState.DENIED, answered_by=by)
    _record_answer(ProgramLoginEvent.REFUSED, row, by, origin, None)


def _answer(row: DeviceAuthorization, **answer: object) -> None:
    """One statement, so that only one of concurrent answers counts."""
    if DeviceAuthorization.objects.open().filter(pk=row.pk).update(**answer) != 1:
        raise ForbiddenError(_ANSWERED)


def _record_answer(
    kind: ProgramLoginEvent,
    row: DeviceAuthorization,
    by: User,
    origin: Origin,
    organisation: Organisation | None,
    reason: str = "",
) -> None:
    record(
        kind,
        origin,
        by=by,
        about=Subject(ProgramLoginSubject.PROGRAM_LOGIN, row.pk, row.client_id),
        organisation=organisation or by.home,
        reason=reason,
    )


# --- The program ---------------------------------------------------------------------------------


def redeem(device_code: str, client_id: str, origin: Origin) -> LoggedIn:
    """Makes the approved key and opens its first session, once.

    Raises ``OAuthError`` otherwise: of unknown and redeemed codes, and those of other clients, all
    answers are the same.
    """
    row = DeviceAuthorization.objects.all().find_by_device_code(device_code)
    state = None if row is None or row.client_id != client_id else row.state
    if row is None or state in (None, DeviceAuthorizationState.REDEEMED):
        raise OAuthError(
            OAuthErrorCode.INVALID_GRANT,
            "The device code is unknown, was used, or belongs to another client.",
        )
    if state == DeviceAuthorizationState.DENIED:
        raise _denied("The login was refused.")
    if row.is_expired:
        raise OAuthError(OAuthErrorCode.EXPIRED_TOKEN, "The device code has expired. Start again.")
    if state == DeviceAuthorizationState.PENDING:
        if DeviceAuthorization.objects.all().note_poll(row):
            raise OAuthError(OAuthErrorCode.AUTHORIZATION_PENDING, "Nobody has approved it yet.")
        raise OAuthError(OAuthErrorCode.SLOW_DOWN, "Add 5 seconds to the interval, for good.")
    return _log_in(row, origin)


def _log_in(row: DeviceAuthorization, origin: Origin) -> LoggedIn:
    try:
        outcome = _make_key(row, origin)
    except LimitExceededError as full:
        raise _denied(" ".join(full.messages)) from None
    if outcome is None:
        raise _denied("The person who approved it no longer has any of these scopes.")
    api_key, opened = outcome.issued.api_key, outcome.opened
    record_issue(api_key, origin, by=api_key.approved_by)
    record_opening(opened.session, api_key.key, origin)
    return outcome


def _denied(description: str) -> OAuthError:
    return OAuthError(OAuthErrorCode.ACCESS_DENIED, description)


@transaction.atomic
def _make_key(row: DeviceAuthorization, origin: Origin) -> LoggedIn | None:
    """``None`` if nothing of what was approved is left to give; that ends the login, too."""
    if not DeviceAuthorization.objects.all().redeem(row):
        raise OAuthError(OAuthErrorCode.INVALID_GRANT, "The device code was used.")
    approved = DeviceAuthorization.objects.select_related("organisation").get(pk=row.pk)
    organisation = cast("Organisation", approved.organisation)
    # Orders this before or after a change of the role or the account.
    users = User.objects.select_for_update(no_key=True)
    approver = users.get(pk=cast("UUID", approved.answered_by_id))
    maker = Maker.person(approver, organisation)
    held = shared(approved.held_scopes, maker.scopes)
    if not held or not organisation.is_active or not _is_as_then(approver, organisation, approved):
        DeviceAuthorization.objects.filter(pk=row.pk).update(state=DeviceAuthorizationState.DENIED)
        return None
    api_key = _key_of(organisation, approved.key_name, approver, held, approved.key_expires_at)
    issued = add_api_key(api_key, maker)
    opened = open_first_session(issued, origin)
    if may_send_mail(organisation.pk):
        send_program_login_notice.enqueue(
            str(api_key.pk), row.client_id, origin.client_address, request_id=origin.request_id
        )
    return LoggedIn(issued, opened)


def _is_as_then(approver: User, organisation: Organisation, approved: DeviceAuthorization) -> bool:
    """Whether the person's logins and membership have lasted since the approval."""
    ended_at = approver.sessions_valid_after
    answered_at = cast("datetime", approved.answered_at)
    if not approver.is_staff or (ended_at is not None and ended_at >= answered_at):
        return False
    joined = Membership.objects.filter(
        user=approver, organisation=organisation, created_at__lt=answered_at
    )
    return approver.is_superuser or joined.exists()


def _key_of(
    organisation: Organisation,
    name: str,
    approver: User,
    scopes: Scopes,
    expires_at: datetime | None,
) -> ApiKey:
    return ApiKey(
        organisation=organisation,
        name=name.strip(),
        scopes=[scope.value for scope in in_order(scopes)],
        expires_at=expires_at,
        created_by=approver,
        approved_by=approver,
    )


def forget_expired_logins() -> int:
    """Deletes logins an hour after they expired, answered or not."""
    end = timezone.now() - _KEPT_AFTER_EXPIRY
    expired = DeviceAuthorization.objects.filter(expires_at__lte=end)
    return delete_in_batches(expired, order=("expires_at",))
