"""Adds versions of scripts, and makes them the live ones."""

import uuid
from collections.abc import Sequence
from hashlib import sha256

from django.db.models import Max
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine.definition_quota import count_definition
from scripts_engine.models import ScriptVersion
from scripts_engine.runs.spec import Author


def source_digest(source: str) -> str:
    """SHA-256 of the source, in hex."""
    return sha256(source.encode()).hexdigest()


def add_version(
    organisation: Organisation,
    script_id: uuid.UUID,
    source: str,
    author: Author,
    *,
    draft_of: str = "",
    base_id: uuid.UUID | None = None,
) -> ScriptVersion:
    """Adds the script's next version, which is not live yet; the script may be created later.

    Call it in a transaction that locks the script. Raises ``LimitExceededError``.
    """
    count_definition(organisation, source)
    numbers = ScriptVersion.objects.filter(script=script_id).order_by("-number")
    return ScriptVersion.objects.create(
        script_id=script_id,
        number=(numbers.values_list("number", flat=True).first() or 0) + 1,
        source=source,
        source_digest=source_digest(source),
        draft_of=draft_of,
        base_id=base_id,
        created_by=author.user,
        created_with=author.api_key,
    )


def mark_published(versions: Sequence[ScriptVersion]) -> None:
    """Ends drafts, and makes the number of each version the highest of its script.

    At most one version of each script, none of which was live before.
    """
    ids = [version.pk for version in versions]
    ScriptVersion.objects.filter(pk__in=ids).update(draft_of="", published_at=timezone.now())
    of_scripts = ScriptVersion.objects.filter(script__in=[each.script_id for each in versions])
    highest = dict(of_scripts.order_by().values_list("script").annotate(Max("number")))
    late = [version for version in versions if version.number < highest[version.script_id]]
    for version in late:
        version.number = highest[version.script_id] + 1
    ScriptVersion.objects.bulk_update(late, ["number"])
