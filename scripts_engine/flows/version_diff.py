from scripts_engine.line_diff import unified_diff
from scripts_engine.models import ScriptVersion


def diff_from_previous(version: ScriptVersion) -> str:
    """What the version changed: a unified diff from the one before, from nothing for the first."""
    earlier = version.script.versions.filter(number__lt=version.number)
    previous = earlier.order_by("-number").first()
    lines = unified_diff(
        [] if previous is None else previous.source.splitlines(),
        version.source.splitlines(),
        old_name="nothing" if previous is None else f"version {previous.number}",
        new_name=f"version {version.number}",
    )
    return "\n".join(lines)
