"""A plain model, in memory, of scripts, their versions, drafts, releases and undo.

Objects are numbers. What another kind of objects adds is a dictionary of its states beside
``scripts``: ``apply`` is the only place that changes states and records releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count


class RefusedError(Exception):
    """The real thing must refuse this too, and change nothing."""


@dataclass(frozen=True)
class State:
    """A script that exists."""

    name: str
    is_enabled: bool
    live: int
    """Its live version."""


@dataclass
class Version:
    script: int
    number: int
    source: str
    draft_of: str = ""
    is_published: bool = False
    has_run: bool = False


Change = tuple[State | None, State | None]


@dataclass
class Model:
    scripts: dict[int, State | None] = field(default_factory=dict)
    """``None``: deleted."""
    versions: dict[int, Version] = field(default_factory=dict)
    releases: list[dict[int, Change]] = field(default_factory=list)
    _ids: "count[int]" = field(default_factory=count)

    # --- Releases --------------------------------------------------------------------------------

    def apply(self, after: Mapping[int, State | None]) -> bool:
        """Brings scripts into these states as one release; whether there is anything to change."""
        changes = {
            script: (self.scripts.get(script), state)
            for script, state in after.items()
            if self.scripts.get(script) != state
        }
        states = [*(self.scripts | dict(after)).values()]
        names = [state.name.casefold() for state in states if state is not None]
        if len(set(names)) < len(names):
            raise RefusedError
        for script, (_, state) in changes.items():
            self.scripts[script] = state
            if state is not None:
                self._publish(self.versions[state.live])
        if changes:
            self.releases.append(changes)
        return bool(changes)

    def _publish(self, version: Version) -> None:
        if version.is_published:
            return
        version.is_published, version.draft_of = True, ""
        highest = max(each.number for each in self._of(version.script).values())
        if version.number < highest:
            version.number = highest + 1

    def undo(self, place: int, *, force: bool) -> None:
        items = {
            script: change
            for script, change in self.releases[place].items()
            if self.scripts[script] != change[0]
        }
        is_changed = any(self.scripts[script] != left for script, (_, left) in items.items())
        if not items or (is_changed and not force):
            raise RefusedError
        self.apply({script: before for script, (before, _) in items.items()})

    # --- Scripts ---------------------------------------------------------------------------------

    def create(self, name: str, source: str) -> tuple[int, int]:
        """The script and its version."""
        script = next(self._ids)
        version = self._add(script, source)
        try:
            self.apply({script: State(name, True, version)})
        except RefusedError:
            del self.versions[version]
            raise
        return script, version

    def change(self, script: int, **fields: object) -> None:
        self.apply({script: replace(self.existing(script), **fields)})  # type: ignore[arg-type]

    def save(self, script: int, source: str) -> int | None:
        """The new version, if there is one."""
        state = self.existing(script)
        if self.versions[state.live].source == source:
            return None
        version = self._add(script, source)
        self.apply({script: replace(state, live=version)})
        return version

    def delete(self, script: int) -> None:
        self.apply({script: None})

    def publish(self, versions: list[int]) -> None:
        scripts = [self.versions[version].script for version in versions]
        if len(set(scripts)) < len(scripts):
            raise RefusedError
        after = {
            script: replace(self.existing(script), live=version)
            for script, version in zip(scripts, versions, strict=True)
        }
        if not self.apply(after):
            raise RefusedError

    def existing(self, script: int) -> State:
        state = self.scripts[script]
        if state is None:
            raise RefusedError
        return state

    # --- Drafts ----------------------------------------------------------------------------------

    def save_draft(self, script: int, author: str, source: str) -> int:
        """The draft, which may be a new one."""
        self.existing(script)
        found = [key for key, each in self._of(script).items() if each.draft_of == author]
        if found and not self.versions[found[0]].has_run:
            self.versions[found[0]].source = source
            return found[0]
        if found:
            if self.versions[found[0]].source == source:
                return found[0]
            self.versions[found[0]].draft_of = ""
        draft = self._add(script, source)
        self.versions[draft].draft_of = author
        return draft

    def delete_draft(self, version: int) -> None:
        draft = self.versions[version]
        if not draft.draft_of:
            raise RefusedError
        if draft.has_run:
            draft.draft_of = ""
        else:
            del self.versions[version]

    def run(self, version: int) -> str:
        self.versions[version].has_run |= not self.versions[version].is_published
        return self.versions[version].source

    def _add(self, script: int, source: str) -> int:
        number = max((each.number for each in self._of(script).values()), default=0) + 1
        version = next(self._ids)
        self.versions[version] = Version(script, number, source)
        return version

    def _of(self, script: int) -> dict[int, Version]:
        return {key: each for key, each in self.versions.items() if each.script == script}
