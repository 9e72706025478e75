"""Keys that a program created with its login: none outlasts it, and none keeps what it loses.

A login of a program is a key that a person approved. Otherwise the program would keep access when
that person ends it. Other keys outlast the one that created them, or nobody could replace a key by
one that it created.
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts.flows.minting import within_both
from accounts.models import ApiKey
from accounts.scopes import Scopes, in_order, names_of, shared


def lock_with_created(ids: Iterable[uuid.UUID]) -> list[ApiKey]:
    """The keys and those that are bound to them, without revoked ones.

    All rows are locked until the transaction ends, and none of them creates another meanwhile.
    """
    wanted = set(ids)
    while True:
        wanted |= ApiKey.objects.all().bound_to(wanted)
        before = transaction.savepoint()
        # In one order, so that two of these do not wait for each other.
        rows = ApiKey.objects.select_for_update().filter(pk__in=wanted, revoked_at__isnull=True)
        locked = list(rows.order_by("pk"))
        # Creating a key locks its maker: what was created before this had the lock is seen now.
        if ApiKey.objects.all().bound_to(wanted) <= wanted:
            transaction.savepoint_commit(before)
            return locked
        # Locking the new ones after the others would break that order.
        transaction.savepoint_rollback(before)


class Narrowed(NamedTuple):
    changed: Sequence[tuple[ApiKey, str]]
    """With what changed, for the audit log."""
    revoked: Sequence[ApiKey]
    """Those that had nothing left."""


def narrow_created(api_key: ApiKey) -> Narrowed:
    """Takes from keys that are bound to the key what it does not have itself any more.

    Call it in a transaction, with the key locked. Widening the key gives nothing back.
    """
    changed: list[tuple[ApiKey, str]] = []
    ended: list[ApiKey] = []
    for row in lock_with_created([api_key.pk]):
        if row.pk == api_key.pk:
            continue
        scopes = shared(row.held_scopes, api_key.held_scopes)
        networks = within_both(row.allowed_networks, api_key.allowed_networks)
        if not scopes or networks is None:
            ended.append(row)
            continue
        if changes := _narrow(row, scopes, networks, api_key):
            row.save(update_fields=["scopes", "allowed_networks", "expires_at"])
            changed.append((row, ", ".join([*changes, f"as {api_key.key}, which created it"])))
    return Narrowed(changed, _revoke(ended))


def _narrow(row: ApiKey, scopes: Scopes, networks: list[str], within: ApiKey) -> list[str]:
    """Sets what is less than before, and returns what that is."""
    changes = []
    if row.allowed_networks != networks:
        row.allowed_networks = networks
        changes.append("allowed_networks")
    end = within.expires_at
    if end is not None and (row.expires_at is None or row.expires_at > end):
        row.expires_at = end
        changes.append("expires_at")
    if row.held_scopes != scopes:
        changes.append(change_of_scopes(row.held_scopes, scopes))
        row.scopes = [scope.value for scope in in_order(scopes)]
    return changes


def _revoke(api_keys: Sequence[ApiKey]) -> Sequence[ApiKey]:
    if not api_keys:
        return ()
    rows = lock_with_created(row.pk for row in api_keys)
    revoked = ApiKey.objects.filter(pk__in=[row.pk for row in rows])
    revoked.update(revoked_at=timezone.now())
    return rows


def change_of_scopes(before: Scopes, after: Scopes) -> str:
    """What an event about a key says of its scopes, as that about a role: from what to what."""
    return f"{names_of(before) or 'none'} to {names_of(after) or 'none'}"
