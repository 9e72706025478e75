"""Runs a script on request: from the admin or GraphQL, or with the payload of an earlier run."""

import logging

from accounts.models import Organisation
from core.http.redaction import REDACTED
from scripts_engine.errors import OrganisationInactiveError
from scripts_engine.event import Event
from scripts_engine.flows.author import Author
from scripts_engine.flows.run_script import run_script, run_unrecorded
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.sandbox.limits import Limits

logger = logging.getLogger(__name__)


def try_script(
    script: Script, *, event: Event, author: Author, trigger: Trigger, source: str | None = None
) -> Run:
    """Runs the script for a person or a program, even if it is disabled.

    ``source`` runs in place of the current version, without being saved. Raises
    ``OrganisationInactiveError``, ``SandboxBusy`` or ``SandboxUnavailable`` if nothing ran.
    """
    if not script.organisation.is_active:
        raise OrganisationInactiveError
    spec = RunSpec.of_script(script, trigger=trigger, started_by=author)
    if source is not None and source != script.source:
        spec = spec._replace(version_id=None, source=source)
    return Run.objects.get(pk=run_script(spec, event).run_id)


def try_new_script(organisation: Organisation, *, event: Event, author: Author, source: str) -> Run:
    """Runs the source of a script that is not saved yet. Nothing is stored.

    A recorded run belongs to a script, so this one is not recorded: its ``Run`` is not saved, and
    the source gets neither store nor secrets. Raises the same errors as ``try_script``.
    """
    if not organisation.is_active:
        raise OrganisationInactiveError
    spec = RunSpec(
        organisation_id=organisation.pk,
        script_id=None,
        script_name="script",
        timeout_seconds=Limits().wall_seconds,
        version_id=None,
        source=source,
        trigger=Trigger.ADMIN,
        started_by=author,
    )
    run = run_unrecorded(spec, event)
    logger.info(
        "Tried a script that is not saved: organisation %s, user %s, %s, %d host calls",
        organisation.pk,
        None if author.user is None else author.user.pk,
        run.status,
        len(run.host_calls),
    )
    return run


def run_again(run: Run, *, author: Author, client_address: str) -> Run:
    """Runs the script's current version with the payload of an earlier run.

    The client address is that of the new caller, and redacted headers are left out. Raises the
    same errors as ``try_script``; then there is no new run.
    """
    payload = run.payload_run()
    event = Event(
        method=run.request_method,
        query=run.request_query,
        headers=tuple((name, value) for name, value in run.request_headers if value != REDACTED),
        body=b"" if payload is None else bytes(payload.request_body),
        client_address=client_address,
    )
    return try_script(run.script, event=event, author=author, trigger=Trigger.ADMIN)


def headers_left_out(run: Run) -> list[str]:
    """Names of the run's headers whose values were redacted, so that they cannot be sent again."""
    return [name for name, value in run.request_headers if value == REDACTED]
