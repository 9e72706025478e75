"""Takes over into a folder what is live on the server."""

from dataclasses import dataclass

from moonhook_cli.folder import SETTINGS, Folder
from moonhook_cli.merging import merge, merge_without_base
from moonhook_cli.remote import Remote
from moonhook_cli.settings import Settings, Target
from moonhook_cli.state import State


@dataclass(frozen=True, slots=True)
class Pulled:
    changes: dict[str, str]
    """What became of each changed file: Created, Updated, Deleted or Conflict."""
    state: State

    @property
    def conflicts(self) -> list[str]:
        return [path for path, action in self.changes.items() if action == "Conflict"]


def pull(
    folder: Folder, target: Target, remote: Remote, sources: dict[str, str], state: State | None
) -> Pulled:
    """Merges into each file what the server changed since ``state``; ``sources`` are by digest.

    Where both sides changed the same lines, the file has both between conflict markers.
    """
    local = folder.sources() | {SETTINGS: folder.read(SETTINGS) or ""}
    settings = Settings(state.files[SETTINGS] if state else local[SETTINGS])
    before = state.manifest if state else None
    theirs = settings.apply(before, remote.manifest, sources, target)
    theirs[SETTINGS] = settings.text
    base = state.files if state else {}
    changes: dict[str, str] = {}
    for path in sorted(theirs.keys() | base.keys()):
        action = _take(folder, path, base.get(path), local.get(path), theirs.get(path))
        if action is not None:
            changes[path] = action
    release = remote.release["number"] if remote.release else None
    return Pulled(changes, State(remote.organisation_id, release, remote.manifest, theirs))


def _take(
    folder: Folder, path: str, base: str | None, mine: str | None, theirs: str | None
) -> str | None:
    if theirs in (mine, base):
        return None
    if mine == base or mine is None:
        if theirs is None:
            folder.delete(path)
            return "Deleted"
        folder.write(path, theirs)
        return "Created" if base is None else ("Updated" if mine is not None else "Restored")
    if theirs is None:
        merged = merge(base or "", mine, "")
    elif base is None:
        merged = merge_without_base(mine, theirs)
    else:
        merged = merge(base, mine, theirs)
    if merged.text == mine:
        return None
    folder.write(path, merged.text)
    return "Conflict" if merged.conflicts else "Updated"
