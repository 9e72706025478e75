from scripts_engine.errors import OrganisationInactiveError
from scripts_engine.event import Event
from scripts_engine.flows.author import Author
from scripts_engine.flows.run_script import Subject, run_script
from scripts_engine.models import Run, Script, Trigger


def try_script(
    script: Script, *, event: Event, author: Author, trigger: Trigger, source: str | None = None
) -> Run:
    """Runs the script at a person's or a program's wish; a disabled one too.

    ``source`` is what to run in the place of the current version, without saving it. Raises
    ``OrganisationInactiveError``, ``SandboxBusy`` and ``SandboxUnavailable``: then nothing ran.
    """
    if not script.organisation.is_active:
        raise OrganisationInactiveError
    is_unsaved = source is not None and source != script.source
    finished = run_script(
        Subject(
            organisation_id=script.organisation_id,
            script_id=script.pk,
            script_name=script.name,
            timeout_seconds=script.timeout_seconds,
            version_id=None if is_unsaved else script.current_version_id,
            source=source if source is not None else script.source,
            trigger=trigger,
            started_by=author,
        ),
        event,
    )
    return Run.objects.get(pk=finished.run_id)
