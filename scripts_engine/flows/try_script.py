from scripts_engine.event import Event
from scripts_engine.flows.author import Author
from scripts_engine.flows.run_script import FinishedRun, Subject, run_script
from scripts_engine.models import Script, Trigger


def try_script(script: Script, *, event: Event, author: Author, trigger: Trigger) -> FinishedRun:
    """Runs the current version at a person's or a program's wish; a disabled script too."""
    return run_script(
        Subject(
            script=script,
            version=script.current_version,
            source=script.source,
            trigger=trigger,
            started_by=author,
        ),
        event,
    )
