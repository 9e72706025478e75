"""Creating, rotating and revoking API keys, and scopes of keys in the audit log."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.addresses import canonical_networks
from accounts.audit import Ended, Subject, record, record_ends
from accounts.flows.created_keys import change_of_scopes, lock_with_created, narrow_created
from accounts.flows.minting import PLATFORM, Maker, capped
from accounts.flows.row_limit import check_row_limit
from accounts.models import ActorKind, ApiKey, AuditReason, AuthEventKind, Organisation, User
from accounts.models.rotating_secret import validated_overlap
from accounts.models.scopes_field import canonical_scopes
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from accounts.scopes import Scopes, in_order, names_of, scopes_named
from core.errors import ForbiddenError
from core.http.origin import NOWHERE, Actor, Origin

_DAY = timedelta(days=1)
# As a multiple of the keys that an organisation may have.
_ISSUES_A_DAY = 10
_REVOKED_A_ROUND = 1_000
_CHANGEABLE = ("name", "scopes", "expires_at", "allowed_networks")


class IssuedApiKey(NamedTuple):
    api_key: ApiKey
    secret: str


def issue_api_key(
    organisation: Organisation,
    *,
    name: str,
    scopes: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    allowed_networks: Sequence[str] | None = None,
    created_by: User | None = None,
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
) -> IssuedApiKey:
    """Creates a key; its secret is returned here only, and never stored.

    Scopes, expiry and networks that are not given are the maker's own. Raises ``ValidationError``
    by field, ``BeyondMakerError`` or ``LimitExceededError``.
    """
    held = maker.scopes if scopes is None else checked_scopes(scopes)
    limits = capped(maker, expires_at, allowed_networks)
    networks = checked_networks(limits.networks)
    api_key = ApiKey(
        organisation=organisation,
        name=name.strip(),
        expires_at=_future(limits.expires_at),
        allowed_networks=networks,
        scopes=[scope.value for scope in in_order(held)],
        created_by=created_by,
        created_with_id=maker.key_id,
        approved_by_id=maker.approver_id,
    )
    issued = add_api_key(api_key, maker)
    record_issue(issued.api_key, origin, created_by)
    return issued


def add_api_key(api_key: ApiKey, maker: Maker) -> IssuedApiKey:
    """Saves a new key with a new secret; raises as ``issue_api_key`` does, which records it."""
    organisation = api_key.organisation
    secret = api_key.renew_secret()
    api_key.full_clean()
    with transaction.atomic():
        maker = maker.as_of_now(is_locked=True)
        maker.gives_key(api_key.held_scopes, api_key.expires_at, api_key.allowed_networks)
        every, most = (
            ApiKey.objects.filter(organisation=organisation),
            settings.API_KEYS_PER_ORGANISATION,
        )
        check_row_limit(organisation.pk, every.filter(revoked_at__isnull=True), most, "API keys")
        # Revoked keys keep their rows, because runs and versions name them.
        issued = every.filter(created_at__gt=timezone.now() - _DAY)
        check_row_limit(
            organisation.pk, issued, _ISSUES_A_DAY * most, "API keys that were issued within a day"
        )
        api_key.save()
    return IssuedApiKey(api_key, secret)


def record_issue(api_key: ApiKey, origin: Origin, by: User | None) -> None:
    record(
        AuthEventKind.API_KEY_ISSUED,
        origin,
        by=by,
        about=Subject.api_key(api_key),
        organisation=api_key.organisation,
        credential=api_key.key,
        reason=names_of(api_key.held_scopes),
    )


def checked_scopes(names: Sequence[str]) -> Scopes:
    """The scopes of these names. Raises ``ValidationError`` under the field's name."""
    try:
        return scopes_named(canonical_scopes(names))
    except ValidationError as error:
        raise ValidationError({"scopes": error}) from None


def update_api_key(
    api_key: ApiKey,
    *,
    name: str | None = None,
    scopes: Sequence[str] | None = None,
    origin: Origin,
    by: User | None = None,
    maker: Maker = PLATFORM,
    **limits: Any,
) -> ApiKey:
    """Changes what is given: name, scopes, and of ``limits`` ``expires_at``, ``allowed_networks``.

    Counts from the key's next request on. What stays as it was is neither saved nor recorded. Keys
    that are bound to the key lose what it loses; those with nothing left are revoked. The
    maker must have what the key had before, and what it has afterwards. Raises ``ValidationError``
    by field, ``BeyondMakerError``, and ``ForbiddenError`` for a revoked key.
    """
    with transaction.atomic():
        # Everything that may change, in one statement: another order could deadlock with a
        # revocation.
        lock_with_created([api_key.pk, *([maker.key_id] if maker.key_id else ())])
        row, maker = _locked(api_key, maker)
        if row.revoked_at is not None:
            raise ForbiddenError("This key is revoked. Create a new one.")
        maker.touches_key(row)
        held = row.held_scopes
        before = {field: getattr(row, field) for field in _CHANGEABLE}
        if name is not None:
            row.name = name.strip()
        if scopes is not None:
            row.scopes = [scope.value for scope in in_order(checked_scopes(scopes))]
        if "expires_at" in limits:
            row.expires_at = _future(limits["expires_at"])
        if "allowed_networks" in limits:
            row.allowed_networks = checked_networks(limits["allowed_networks"])
        maker.gives_key(row.held_scopes, row.expires_at, row.allowed_networks)
        row.full_clean()
        fields = {field for field in _CHANGEABLE if getattr(row, field) != before[field]}
        if not fields:
            return row
        if "expires_at" in fields:
            row.expiry_notice_days = None
        row.save(update_fields=fields | {"expiry_notice_days"})
        narrowed = narrow_created(row)
    changes = sorted(fields - {"scopes"})
    if row.held_scopes != held:
        changes.append(change_of_scopes(held, row.held_scopes))
    for changed, reason in [(row, ", ".join(changes)), *narrowed.changed]:
        record(
            AuthEventKind.API_KEY_CHANGED,
            origin,
            by=by,
            about=Subject.api_key(changed),
            organisation=row.organisation,
            credential=changed.key,
            reason=reason,
        )
    _record_revoked(narrowed.revoked, origin, by, asked=())
    return row


def _future(expires_at: datetime | None) -> datetime | None:
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError(
            {"expires_at": ValidationError("This time has passed.", code="invalid")}
        )
    return expires_at


def _locked(stale: ApiKey, maker: Maker) -> tuple[ApiKey, Maker]:
    """The key and its maker as they are now; both rows stay until the transaction ends."""
    rows = ApiKey.objects.select_for_update(of=("self",)).select_related("organisation")
    # In one order, so that two keys that change each other do not wait for each other.
    found = {row.pk: row for row in rows.filter(pk__in={stale.pk, maker.key_id}).order_by("pk")}
    return found[stale.pk], maker.as_of_now(is_locked=True)


def checked_networks(networks: Sequence[str]) -> list[str]:
    """The networks in canonical form. Raises ``ValidationError`` under the field's name."""
    try:
        return canonical_networks(networks)
    except ValidationError as error:
        raise ValidationError({"allowed_networks": error}) from None


def rotate_api_key(
    api_key: ApiKey,
    *,
    overlap_seconds: int = 0,
    origin: Origin,
    by: User | None = None,
    maker: Maker = PLATFORM,
) -> IssuedApiKey:
    """Gives the key a new secret; the old one stays valid for the overlap, 0 to 7 days.

    Open sessions stay open; if the secret has leaked, revoke the key instead. The maker could use
    the new secret, so must have all that the key has. Raises ``ValidationError`` by field,
    ``BeyondMakerError``, and ``ForbiddenError`` for a revoked key.
    """
    issued = _rotate(api_key, validated_overlap(overlap_seconds), maker)
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
def _rotate(stale: ApiKey, overlap: timedelta, maker: Maker) -> IssuedApiKey:
    api_key, maker = _locked(stale, maker)
    if api_key.revoked_at is not None:
        raise ForbiddenError("This key is revoked. Create a new one.")
    maker.touches_key(api_key)
    return IssuedApiKey(api_key, api_key.rotate_secret(overlap))


def revoke_api_key(api_key: ApiKey, *, origin: Origin = NOWHERE) -> ApiKey:
    """Revokes the key for good, and with it its sessions, which every request checks again.

    So are the keys that are bound to it.
    """
    revoke_api_keys([api_key], origin=origin)
    api_key.refresh_from_db(fields=["revoked_at"])
    return api_key


def revoke_api_keys(
    api_keys: Iterable[ApiKey], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[ApiKey]:
    """Revokes the keys and those that are bound to them: see ``ApiKeyQuerySet.bound_to``.

    Returns those not revoked before. The number of queries does not depend on that of the keys.
    """
    asked = {api_key.pk for api_key in api_keys}
    with transaction.atomic():
        good = lock_with_created(asked)
        revoked = ApiKey.objects.filter(pk__in=[api_key.pk for api_key in good])
        revoked.update(revoked_at=timezone.now())
    _record_revoked(good, origin, by, asked=asked)
    return good


def _record_revoked(
    api_keys: Sequence[ApiKey], origin: Origin, by: User | None, *, asked: Collection[UUID]
) -> None:
    """One event for each key; those that nobody asked for tell why."""
    record_ends(
        AuthEventKind.API_KEY_REVOKED,
        origin,
        [
            Ended(
                Subject.api_key(api_key),
                api_key.organisation_id,
                api_key.key,
                by=by,
                reason="" if api_key.pk in asked else AuditReason.CREATED_WITH_IT,
            )
            for api_key in api_keys
        ],
    )


def revoke_keys_ended_with_approver() -> int:
    """Revokes, on record, keys that no longer open sessions because their approver is gone."""
    ended = ApiKey.objects.ended_with_approver().order_by("pk")[:_REVOKED_A_ROUND]
    system = Origin(actor=Actor(ActorKind.SYSTEM, "", ""))
    return len(revoke_api_keys(ended, origin=system))


def record_refused_scopes(api_key: ApiKey, names: Iterable[str], *, origin: Origin) -> None:
    """Records refusals, at most one for each key and scope in 15 minutes on all nodes."""
    new = [
        name
        for name in names
        if is_first(windows.REFUSED_SCOPES_ON_RECORD, "refused-scope", api_key.key, name)
    ]
    for name in new:
        record(
            AuthEventKind.SCOPE_REFUSED,
            origin,
            about=Subject.api_key(api_key),
            organisation=api_key.organisation,
            credential=api_key.key,
            reason=name,
        )
