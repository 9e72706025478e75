"""Creates, changes, restores and deletes scripts."""

from django.db import transaction
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine.flows.author import Author
from scripts_engine.flows.source import check_source
from scripts_engine.models import Script, ScriptVersion

# Fields that ``update_script`` changes.
FIELDS = frozenset({"name", "timeout_seconds", "is_enabled"})


def create_script(organisation: Organisation, *, name: str, source: str, author: Author) -> Script:
    """Creates a script and its first version. Raises ``ValidationError`` or ``SourceError``."""
    script = Script(organisation=organisation, name=name.strip())
    script.full_clean()
    check_source(organisation, source, script.name)
    with transaction.atomic():
        script.save()
        save_source(script, source, author)
    return script


def update_script(
    script: Script, *, author: Author, source: str | None = None, **changes: object
) -> Script:
    """Changes the given fields, out of ``FIELDS``, and saves a new version of a given source.

    Changes all or nothing. Raises ``ValidationError`` by field, or ``SourceError``.
    """
    for field in FIELDS & changes.keys():
        value = changes[field]
        setattr(script, field, value.strip() if isinstance(value, str) else value)
    script.full_clean()
    if source is not None:
        check_source(script.organisation, source, script.name)
    with transaction.atomic():
        locked = Script.objects.select_for_update().get(pk=script.pk)
        script.current_version = locked.current_version
        script.save(update_fields=[*(FIELDS & changes.keys()), "updated_at"])
        if source is not None:
            save_source(script, source, author)
    return script


def save_source(script: Script, source: str, author: Author) -> ScriptVersion:
    """Saves the source as the script's next version, and makes that the current one.

    Returns the current version if the source has not changed. Call it in a transaction that locks
    the script's row.
    """
    current = script.current_version
    if current is not None and current.source == source:
        return current
    last = script.versions.order_by("-number").values_list("number", flat=True).first() or 0
    version = ScriptVersion.objects.create(
        script=script,
        number=last + 1,
        source=source,
        created_by=author.user,
        created_with=author.api_key,
    )
    script.current_version = version
    script.save(update_fields=["current_version", "updated_at"])
    return version


def restore_script_version(version: ScriptVersion, *, author: Author) -> Script:
    """Saves the version's source as a new version; later versions are kept."""
    return update_script(version.script, author=author, source=version.source)


def delete_script(script: Script) -> None:
    """Deletes the script, with immediate effect on its hooks; runs and versions stay readable."""
    Script.objects.existing().filter(pk=script.pk).update(deleted_at=timezone.now())
