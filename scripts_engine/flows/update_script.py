from django.db import transaction

from scripts_engine.flows.author import Author
from scripts_engine.flows.check_source import check_source
from scripts_engine.flows.save_source import save_source
from scripts_engine.models import Script

FIELDS = frozenset({"name", "timeout_seconds", "is_enabled"})


def update_script(
    script: Script, *, author: Author, source: str | None = None, **changes: object
) -> Script:
    """Changes the given ones of ``FIELDS`` and, with ``source``, saves a new version.

    All or nothing. Raises ``ValidationError`` by field, or ``SourceError``.
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
