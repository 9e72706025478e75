import difflib

from scripts_engine.models import ScriptVersion


def diff_from_previous(version: ScriptVersion) -> str:
    """What the version changed: a unified diff from the one before, from nothing for the first."""
    earlier = version.script.versions.filter(number__lt=version.number)
    previous = earlier.order_by("-number").first()
    before = "" if previous is None else previous.source
    lines = difflib.unified_diff(
        before.splitlines(),
        version.source.splitlines(),
        fromfile="nothing" if previous is None else f"version {previous.number}",
        tofile=f"version {version.number}",
        lineterm="",
    )
    return "\n".join(lines)
