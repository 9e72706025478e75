"""Blobs: sources that were uploaded for plans, and are not in any version yet.

Their problem code is registered at start.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from accounts.models import Organisation
from core.errors import LimitExceededError
from core.http.problems import Meaning, register_problems
from scripts_engine.definition_quota import ROW_BYTES, Octets, count_growth, uncount_definitions
from scripts_engine.flows.definitions import forget_rows
from scripts_engine.flows.source import validate_source_text
from scripts_engine.models import Blob, ScriptVersion
from scripts_engine.releases.items import is_digest

# As many as a manifest has items.
MAX_DIGESTS = 1_000
_UNUSED_FOR = timedelta(hours=1)


class DigestMismatchError(Exception):
    """The content does not have the digest under which it was sent."""


def missing_blobs(organisation: Organisation, digests: Collection[str]) -> list[str]:
    """Those that the organisation has neither as a blob nor in a version, each once.

    Raises ``ValidationError`` by the field ``digests``.
    """
    if len(digests) > MAX_DIGESTS:
        raise _invalid_digests(f"Ask for at most {MAX_DIGESTS:,} digests at a time.")
    if not all(map(is_digest, digests)):
        raise _invalid_digests("A digest is a SHA-256 as 64 hexadecimal digits in lower case.")
    known = known_digests(organisation, digests)
    return [digest for digest in dict.fromkeys(digests) if digest not in known]


def _invalid_digests(message: str) -> ValidationError:
    return ValidationError({"digests": ValidationError(message, code="invalid")})


def known_digests(organisation: Organisation, digests: Collection[str]) -> set[str]:
    return {
        digest
        for rows in _rows_with(organisation, digests)
        for digest in rows.values_list("digest", flat=True)
    }


def sources_of(organisation: Organisation, digests: Collection[str]) -> dict[str, str]:
    """The sources by digest; those that the organisation does not have are left out."""
    found: dict[str, str] = {}
    for rows in _rows_with(organisation, digests):
        found |= dict(rows.values_list("digest", "source"))
    return found


def _rows_with(organisation: Organisation, digests: Collection[str]) -> Iterable["QuerySet[Any]"]:
    """Other organisations' rows never count, or digests would tell what they have."""
    versions = ScriptVersion.objects.of_organisation(organisation).order_by()
    yield Blob.objects.filter(organisation=organisation, digest__in=digests)
    yield versions.filter(source_digest__in=digests).annotate(digest=F("source_digest"))


def keep_blob(organisation: Organisation, digest: str, content: bytes) -> bool:
    """Keeps a source, and returns whether it is new.

    Raises ``DigestMismatchError``, ``ValidationError`` for a source that is not text or too long,
    or ``LimitExceededError``.
    """
    if hashlib.sha256(content).hexdigest() != digest:
        raise DigestMismatchError
    try:
        source = content.decode()
    except UnicodeDecodeError:
        raise ValidationError("A source is text in UTF-8.", code="invalid") from None
    validate_source_text(source)
    return bool(keep_sources(organisation, {digest: source}))


def keep_blobs(organisation: Organisation, sources: Sequence[str]) -> list[str]:
    """Keeps sources, all or none, and returns the digest of each.

    Raises ``ValidationError`` by the field ``sources``, or ``LimitExceededError``.
    """
    if len(sources) > MAX_DIGESTS:
        raise _invalid_sources(f"Send at most {MAX_DIGESTS:,} sources at a time.")
    for place, source in enumerate(sources):
        try:
            validate_source_text(source)
        except ValidationError as error:
            raise _invalid_sources(f"sources[{place}]: {' '.join(error.messages)}") from None
    digests = [hashlib.sha256(source.encode()).hexdigest() for source in sources]
    keep_sources(organisation, dict(zip(digests, sources, strict=True)))
    return digests


def _invalid_sources(message: str) -> ValidationError:
    return ValidationError({"sources": ValidationError(message, code="invalid")})


@transaction.atomic
def keep_sources(organisation: Organisation, sources: Mapping[str, str]) -> int:
    """Keeps checked sources by digest, returns how many are new. Raises ``LimitExceededError``."""
    # Locked, so that of two concurrent requests only one gets the last place.
    Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
    blobs = Blob.objects.filter(organisation=organisation)
    old = blobs.filter(digest__in=sources)
    known, now = set(old.values_list("digest", flat=True)), timezone.now()
    old.update(used_at=now)
    new = {digest: source for digest, source in sources.items() if digest not in known}
    if not new:
        return 0
    most = settings.BLOBS_PER_ORGANISATION
    if blobs.count() + len(new) > most:
        raise LimitExceededError(
            f"An organisation has at most {most:,} sources that are in no version yet. Those that "
            "no plan uses go after an hour."
        )
    count_growth(organisation, sum(ROW_BYTES + len(source.encode()) for source in new.values()))
    Blob.objects.bulk_create(
        Blob(organisation=organisation, digest=digest, source=source, used_at=now)
        for digest, source in new.items()
    )
    return len(new)


def use_blobs(organisation: Organisation, digests: Collection[str]) -> None:
    """Lets those that there are live as long as a plan that begins now."""
    blobs = Blob.objects.filter(organisation=organisation, digest__in=digests)
    blobs.update(used_at=timezone.now())


def forget_saved_blobs(organisation: Organisation, digests: Collection[str]) -> None:
    """Deletes blobs that are in versions now. Call it in the transaction that saves those."""
    blobs = Blob.objects.filter(organisation=organisation, digest__in=digests)
    sizes = dict(_with_sizes(blobs).values_list("pk", "bytes"))
    if sizes:
        Blob.objects.filter(pk__in=sizes).delete()
        uncount_definitions(organisation.pk, sum(sizes.values()))


def forget_unused_blobs() -> int:
    """Deletes blobs that no plan of the last hour uses. Returns their number."""
    unused = Blob.objects.filter(used_at__lte=timezone.now() - _UNUSED_FOR)
    with_unused = Organisation.objects.filter(pk__in=unused.values("organisation"))
    return sum(
        forget_rows(organisation, _with_sizes(unused.filter(organisation=organisation)))
        for organisation in with_unused
    )


def _with_sizes(blobs: "QuerySet[Blob]") -> "QuerySet[Any]":
    return blobs.annotate(bytes=Octets("source") + ROW_BYTES)


class BlobProblem(StrEnum):
    DIGEST_MISMATCH = "digest-mismatch"


def register() -> None:
    register_problems(
        {
            BlobProblem.DIGEST_MISMATCH: Meaning(
                HTTPStatus.BAD_REQUEST,
                "Digest mismatch",
                "The SHA-256 of the body is not the one in the address. Nothing was kept.",
            ),
        }
    )
