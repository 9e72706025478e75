"""A script is tried: by a person, or with an earlier call again."""

from core.http.redaction import REDACTED
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


def run_again(run: Run, *, author: Author, client_address: str) -> Run:
    """Runs the script's current version with what the run was called with.

    The client is whoever wants it now. Headers whose values were not kept are left out. Raises
    what ``try_script`` raises: nothing ran, and there is no new run.
    """
    event = Event(
        method=run.request_method,
        query=run.request_query,
        headers=tuple((name, value) for name, value in run.request_headers if value != REDACTED),
        body=bytes(run.request_body),
        client_address=client_address,
    )
    return try_script(run.script, event=event, author=author, trigger=Trigger.ADMIN)


def headers_left_out(run: Run) -> list[str]:
    """The names of those that the run was called with and that were not kept."""
    return [name for name, value in run.request_headers if value == REDACTED]
