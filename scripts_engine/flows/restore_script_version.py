from scripts_engine.flows.author import Author
from scripts_engine.flows.update_script import update_script
from scripts_engine.models import Script, ScriptVersion


def restore_script_version(version: ScriptVersion, *, author: Author) -> Script:
    """Makes the version's source the script's newest version; the ones between stay."""
    return update_script(version.script, author=author, source=version.source)
