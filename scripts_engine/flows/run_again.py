from core.http.redaction import REDACTED
from scripts_engine.event import Event
from scripts_engine.flows.author import Author
from scripts_engine.flows.try_script import try_script
from scripts_engine.models import Run, Trigger


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
