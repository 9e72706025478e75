"""What is noted of calls: refusals, handshakes, and which credentials are still in use.

Written to the database note by note; the newest of each hook are kept.
"""

import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Greatest
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.models import AuthEvent
from hooks.audit_kinds import HookEvent
from hooks.models import AnsweredHandshake, CredentialUse, Hook, RefusalCount, RefusedCall
from hooks.models.refused_call import RefusedContent, encrypted
from scripts_engine.models import Script
from scripts_engine.redaction import storable

# Kept of every refused call: how the body is to be read.
KEPT_HEADERS = frozenset({"content-type", "content-encoding"})
MAX_HEADER_NAMES = 100


@dataclass(frozen=True, slots=True)
class RefusedCallNote:
    """A refused call. Headers and URL are Latin-1 text, as received."""

    at: datetime
    reason: str
    detail: str
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    hook_id: uuid.UUID | None
    """``None`` if no callable hook has the token."""
    client_address: str
    method: str
    headers: tuple[tuple[str, str], ...]
    """With the values of those that are kept; others are ``""``."""
    query: str
    subpath: str = ""
    """The path after the hook's address."""
    url: str = ""
    """What the sender signs, if it signs the URL; contains the call token."""
    sender: str = ""
    sender_headers: frozenset[str] = frozenset()
    """The sender's own headers, in lower case: only their values are kept."""
    body: bytes | None = None
    """``None`` if it was not read."""
    call_token: str = ""
    """The token that no hook has. Never stored."""

    @property
    def subject(self) -> uuid.UUID:
        return self.hook_id or self.script_id


class HandshakeNote(NamedTuple):
    hook_id: uuid.UUID
    at: datetime
    sender: str
    client_address: str
    response_status: int


class RefusalCounter(NamedTuple):
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    subject: uuid.UUID
    reason: str
    day: date


class UsedCredential(NamedTuple):
    """``name`` is the digest of a call token, or the id of a signing secret."""

    hook_id: uuid.UUID
    name: str


class Use(NamedTuple):
    times: int
    last_used_at: datetime
    last_used_from: str


@dataclass(slots=True)
class Notes:
    """What has been noted since the last write."""

    refused: list[RefusedCallNote] = field(default_factory=list)
    refusals: Counter[RefusalCounter] = field(default_factory=Counter)
    strangers: list[RefusedCallNote] = field(default_factory=list)
    """Refused calls whose token no hook has."""
    strangers_refusals: Counter[RefusalCounter] = field(default_factory=Counter)
    handshakes: list[HandshakeNote] = field(default_factory=list)
    uses: dict[UsedCredential, Use] = field(default_factory=dict)

    def __bool__(self) -> bool:
        refused = self.refused or self.refusals or self.strangers or self.strangers_refusals
        return bool(refused or self.handshakes or self.uses)


# --- Storage --------------------------------------------------------------------------------------

# Of a hook, or of a script's calls whose token no hook has.
KEPT_REFUSED_CALLS = 20
KEPT_CONTENTS = 5
# Contents are kept of these alone: an organisation may have thousands of hooks.
NEWEST_OF_ORGANISATION = 1_000
# Several nodes may store calls at once; each looks at so many older ones.
_LOOKED_AT = 50
KEPT_HANDSHAKES = 5
# Larger bodies are not kept.
MAX_BODY_BYTES = 256 * 1024
MAX_DETAIL_CHARACTERS = 200
MAX_METHOD_CHARACTERS = 10
MAX_NAME_CHARACTERS = 200
# Shorter texts are not tokens that were cut, and may be anything.
MIN_TOKEN_CHARACTERS = 20


def store(notes: Notes) -> None:
    """Writes each note by itself. Rows whose script or hook is gone are left out."""
    scripts = _scripts_of(notes)
    for note in (*notes.refused, *notes.strangers):
        if (note.organisation_id, note.script_id) in scripts:
            _store_refused(note)
    for counter, count in (notes.refusals + notes.strangers_refusals).items():
        if (counter.organisation_id, counter.script_id) in scripts:
            _add_refusals(counter, count)
    for handshake in notes.handshakes:
        _store_handshake(handshake)
    for credential, use in notes.uses.items():
        _add_use(credential, use)


def _scripts_of(notes: Notes) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """The organisation and id of each script that exists: callers may have made theirs up."""
    ids = {note.script_id for note in (*notes.refused, *notes.strangers)}
    ids |= {each.script_id for each in (*notes.refusals, *notes.strangers_refusals)}
    scripts = Script.objects.existing().order_by().filter(pk__in=ids)
    return set(scripts.values_list("organisation_id", "id"))


# --- Refused calls -------------------------------------------------------------------------------


def _store_refused(note: RefusedCallNote) -> None:
    if note.hook_id is None:
        note = _explained(note)
    row = RefusedCall(
        id=uuid7(),
        organisation_id=note.organisation_id,
        script_id=note.script_id,
        hook_id=note.hook_id,
        at=note.at,
        reason=note.reason,
        detail=storable(note.detail)[:MAX_DETAIL_CHARACTERS],
        client_address=note.client_address or None,
        method=storable(note.method)[:MAX_METHOD_CHARACTERS],
        header_names=[
            storable(name)[:MAX_NAME_CHARACTERS] for name, _ in note.headers[:MAX_HEADER_NAMES]
        ],
    )
    row.content_ciphertext = encrypted(_kept(note), row.pk)
    same = RefusedCall.objects.filter(script=note.script_id, hook=None)
    if note.hook_id is not None:
        same = RefusedCall.objects.filter(hook=note.hook_id)
    if not _insert(row):
        return
    newest = list(same.order_by("-id").values_list("pk", flat=True)[:KEPT_REFUSED_CALLS])
    if len(newest) == KEPT_REFUSED_CALLS:
        same.filter(pk__lt=newest[-1]).delete()
    if len(newest) > KEPT_CONTENTS:
        without = same.filter(pk__lt=newest[KEPT_CONTENTS - 1], content_ciphertext__isnull=False)
        without.update(content_ciphertext=None)
    newest_first = RefusedCall.objects.of_organisation(note.organisation_id).order_by("-id")
    end = NEWEST_OF_ORGANISATION + _LOOKED_AT
    older = list(newest_first.values_list("pk", flat=True)[NEWEST_OF_ORGANISATION:end])
    if older:
        with_content = RefusedCall.objects.filter(pk__in=older, content_ciphertext__isnull=False)
        with_content.update(content_ciphertext=None)


def _insert(row: Any) -> bool:
    """Whether the row was inserted: not if its hook or script was deleted in the meantime."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _kept(note: RefusedCallNote) -> RefusedContent:
    names = note.sender_headers | KEPT_HEADERS
    is_body_kept = note.body is not None and len(note.body) <= MAX_BODY_BYTES
    return RefusedContent(
        headers=tuple((name, value) for name, value in note.headers if name.lower() in names),
        query=note.query,
        url=note.url,
        body=note.body if is_body_kept else None,
        subpath=note.subpath,
    )


def _explained(note: RefusedCallNote) -> RefusedCallNote:
    """Adds what can be said of a wrong call token, and the hook if it once had that token."""
    token = note.call_token
    end = f"ending in …{token[-4:]}" if len(token) >= MIN_TOKEN_CHARACTERS else "too short"
    if not credentials.is_well_formed(token, credentials.SecretKind.CALL_TOKEN):
        return replace(note, detail=f"{end}, cut or mistyped")
    digests = credentials.digests(token)
    hooks = Hook.objects.existing().filter(script=note.script_id)
    if (hook := hooks.filter(previous_digest__in=digests).first()) is not None:
        at = _rotated_at(hook)
        when = "" if at is None else f" of {at:%Y-%m-%d %H:%M} UTC"
        detail = f"{end}, the one before the rotation{when}"
        return replace(note, hook_id=hook.pk, detail=detail)
    found = hooks.filter(digest__in=digests).select_related("script__organisation").first()
    if found is not None:
        detail = f"{end}, of {_switched_off(found)} that is switched off"
        return replace(note, hook_id=found.pk, detail=detail)
    return replace(note, detail=end)


def _switched_off(hook: Hook) -> str:
    if not hook.script.organisation.is_active:
        return "an organisation"
    return "a hook" if hook.script.is_enabled else "a script"


def _rotated_at(hook: Hook) -> datetime | None:
    """When the hook got its current token."""
    rotations = AuthEvent.objects.of_organisation(hook.organisation).of_kind(
        HookEvent.CALL_TOKEN_ROTATED
    )
    newest = rotations.filter(credential=str(hook.pk)).order_by("-id").first()
    return hook.previous_valid_until if newest is None else newest.at


def _add_refusals(counter: RefusalCounter, count: int) -> None:
    rows = RefusalCount.objects.filter(
        subject=counter.subject, reason=counter.reason, day=counter.day
    )
    if not rows.update(count=F("count") + count):
        row = RefusalCount(
            script_id=counter.script_id,
            subject=counter.subject,
            reason=counter.reason,
            day=counter.day,
            count=0,
        )
        RefusalCount.objects.bulk_create([row], ignore_conflicts=True)
        rows.update(count=F("count") + count)


# --- Handshakes and credentials ------------------------------------------------------------------


def _store_handshake(note: HandshakeNote) -> None:
    row = AnsweredHandshake(
        hook_id=note.hook_id,
        at=note.at,
        sender=note.sender,
        client_address=note.client_address or None,
        response_status=note.response_status,
    )
    if _insert(row):
        same = AnsweredHandshake.objects.filter(hook=note.hook_id)
        newest = list(same.order_by("-id").values_list("pk", flat=True)[:KEPT_HANDSHAKES])
        if len(newest) == KEPT_HANDSHAKES:
            same.filter(pk__lt=newest[-1]).delete()


def _add_use(credential: UsedCredential, use: Use) -> None:
    rows = CredentialUse.objects.filter(hook=credential.hook_id, credential=credential.name)
    changes = {
        "count": F("count") + use.times,
        "last_used_at": Greatest("last_used_at", use.last_used_at),
        "last_used_from": use.last_used_from or None,
    }
    if not rows.update(**changes):
        _insert(
            CredentialUse(
                hook_id=credential.hook_id,
                credential=credential.name,
                last_used_at=use.last_used_at,
                last_used_from=use.last_used_from or None,
                count=0,
            )
        )
        rows.update(**changes)
