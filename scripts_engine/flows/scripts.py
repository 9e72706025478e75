"""Creates, changes, restores and deletes scripts."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.audit import Subject, record
from accounts.flows.room import check_room
from accounts.models import AuthEventKind, Organisation, SubjectKind
from accounts.rate_limits.limiter import hit
from accounts.rate_limits.windows import saves_a_minute
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.author import Author
from scripts_engine.flows.definition_quota import count_definition
from scripts_engine.flows.queue.steer import cancel_runs_of
from scripts_engine.flows.source import check_source
from scripts_engine.models import Script, ScriptVersion

# Fields that ``update_script`` changes.
FIELDS = frozenset({"name", "timeout_seconds", "is_enabled", "max_concurrent_runs"})
_SETTINGS = ("name", "timeout_seconds", "max_concurrent_runs")


def create_script(
    organisation: Organisation,
    *,
    name: str,
    source: str,
    author: Author,
    origin: Origin = NOWHERE,
) -> Script:
    """Creates a script and its first version.

    Raises ``ValidationError`` by field, ``SourceError`` or ``LimitExceededError``.
    """
    script = Script(organisation=organisation, name=name.strip())
    script.full_clean()
    check_source(organisation, source, script.name)
    with transaction.atomic():
        scripts = Script.objects.of_organisation(organisation)
        check_room(organisation.pk, scripts, settings.SCRIPTS_PER_ORGANISATION, "scripts")
        script.save()
        save_source(script, source, author)
        _record(AuthEventKind.SCRIPT_CREATED, script, origin)
    return script


def _record(kind: AuthEventKind, script: Script, origin: Origin, reason: str = "") -> None:
    about = Subject(SubjectKind.SCRIPT, script.pk, script.name)
    record(kind, origin, about=about, organisation=script.organisation, reason=reason)


def update_script(
    script: Script,
    *,
    author: Author,
    source: str | None = None,
    restored: int | None = None,
    origin: Origin = NOWHERE,
    **changes: object,
) -> Script:
    """Changes the given fields, out of ``FIELDS``, and saves a new version of a given source.

    ``restored`` is the number of the earlier version that the source is from. Changes all or
    nothing. Raises ``ValidationError`` by field, ``SourceError``, ``LimitExceededError`` or
    ``RateLimitedError``.
    """
    for field in FIELDS & changes.keys():
        value = changes[field]
        setattr(script, field, value.strip() if isinstance(value, str) else value)
    script.full_clean()
    if source is not None:
        check_source(script.organisation, source, script.name)
    with transaction.atomic():
        # Not for its key, or hooks and runs of the script would wait for the end of this.
        locked = Script.objects.select_for_update(no_key=True).get(pk=script.pk)
        script.current_version = locked.current_version
        script.save(update_fields=[*(FIELDS & changes.keys()), "updated_at"])
        _record_settings(script, locked, origin)
        if source is not None:
            version = save_source(script, source, author)
            if version.pk != locked.current_version_id:
                _record_version(script, version, restored, origin)
    return script


def _record_settings(script: Script, before: Script, origin: Origin) -> None:
    changed = [name for name in _SETTINGS if getattr(script, name) != getattr(before, name)]
    if changed:
        _record(AuthEventKind.SCRIPT_CHANGED, script, origin, ", ".join(changed))
    if script.is_enabled != before.is_enabled:
        enabled, disabled = AuthEventKind.SCRIPT_ENABLED, AuthEventKind.SCRIPT_DISABLED
        _record(enabled if script.is_enabled else disabled, script, origin)


def _record_version(
    script: Script, version: ScriptVersion, restored: int | None, origin: Origin
) -> None:
    if restored is None:
        _record(AuthEventKind.SCRIPT_SAVED, script, origin, f"version {version.number}")
    else:
        reason = f"version {restored} as version {version.number}"
        _record(AuthEventKind.SCRIPT_RESTORED, script, origin, reason)


def save_source(script: Script, source: str, author: Author) -> ScriptVersion:
    """Saves the source as the script's next version, and makes that the current one.

    Returns the current version if the source has not changed. Call it in a transaction that locks
    the script's row. Raises ``RateLimitedError`` or ``LimitExceededError``.
    """
    current = script.current_version
    if current is not None:
        if current.source == source:
            return current
        hit([saves_a_minute(settings.SCRIPT_SAVES_PER_MINUTE)], "script-save", str(script.pk))
    count_definition(script.organisation, source)
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


def restore_script_version(
    version: ScriptVersion, *, author: Author, origin: Origin = NOWHERE
) -> Script:
    """Saves the version's source as a new version; later versions are kept."""
    return update_script(
        version.script,
        author=author,
        source=version.source,
        restored=version.number,
        origin=origin,
    )


def delete_script(script: Script, *, origin: Origin = NOWHERE) -> None:
    """Deletes the script, with immediate effect on its hooks and queued runs.

    Its runs and versions stay readable.
    """
    with transaction.atomic():
        if Script.objects.existing().filter(pk=script.pk).update(deleted_at=timezone.now()):
            cancel_runs_of(script)
            _record(AuthEventKind.SCRIPT_DELETED, script, origin)
