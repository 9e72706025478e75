"""A plain model, in memory, of scripts, versions, drafts, hooks with pins, releases and undo.

Objects are numbers. ``apply`` is the only place that changes states and records releases.
"""

from collections.abc import Collection, Mapping
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


@dataclass(frozen=True)
class HookState:
    """A hook that exists."""

    script: int
    name: str
    is_enabled: bool = True
    pin: int | None = None
    """The version that it runs whatever is live."""


@dataclass
class Version:
    script: int
    number: int
    source: str
    draft_of: str = ""
    base: int | None = None
    """What was live when the draft was begun, or last seen by its author."""
    is_published: bool = False
    has_run: bool = False


States = Mapping[int, State | HookState | None]
Change = tuple[State | HookState | None, State | HookState | None]


@dataclass
class Model:
    states: dict[int, State | HookState | None] = field(default_factory=dict)
    """Of scripts and hooks. ``None``: deleted."""
    versions: dict[int, Version] = field(default_factory=dict)
    releases: list[dict[int, Change]] = field(default_factory=list)
    _ids: "count[int]" = field(default_factory=count)

    # --- Releases --------------------------------------------------------------------------------

    def apply(self, after: States) -> bool:
        """Brings objects into these states as one release; whether there is anything to change."""
        changes = {
            key: (self.states.get(key), state)
            for key, state in after.items()
            if self.states.get(key) != state
        }
        self._check({**self.states, **after}, after)
        for key, (_, state) in changes.items():
            self.states[key] = state
            if isinstance(state, State):
                self._publish(self.versions[state.live])
        if changes:
            self.releases.append(changes)
        return bool(changes)

    def _check(self, states: States, after: States) -> None:
        hooks = [state for state in states.values() if isinstance(state, HookState)]
        scripts = [state for state in states.values() if isinstance(state, State)]
        names = [
            *(state.name.casefold() for state in scripts),
            *((state.script, state.name.casefold()) for state in hooks),
        ]
        pins = [(hook.script, self.versions[hook.pin]) for hook in hooks if hook.pin is not None]
        changed = [state for state in after.values() if isinstance(state, HookState)]
        if (
            len(set(names)) < len(names)
            or any(states[hook.script] is None for hook in changed)
            or any(version.script != script or not version.is_published for script, version in pins)
        ):
            raise RefusedError

    def _publish(self, version: Version) -> None:
        if version.is_published:
            return
        version.is_published, version.draft_of = True, ""
        highest = max(each.number for each in self._of(version.script).values())
        if version.number < highest:
            version.number = highest + 1

    def undo(self, place: int, *, force: bool) -> None:
        release = self.releases[place]
        created = {key for key, (before, _) in release.items() if before is None}
        # What came to be upon a script ends with it.
        dependents = {hook for hook in self._hooks_of(created) if hook not in release}
        changes = {**release, **dict.fromkeys(dependents, (None, None))}
        items = {key: each for key, each in changes.items() if self.states[key] != each[0]}
        is_changed = any(self.states[key] != left for key, (_, left) in items.items())
        if not items or (is_changed and not force):
            raise RefusedError
        self.apply({key: before for key, (before, _) in items.items()})

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
        self.apply(dict.fromkeys((script, *self._hooks_of({script}))))

    def publish(self, versions: list[int]) -> None:
        scripts = [self.versions[version].script for version in versions]
        if len(set(scripts)) < len(scripts):
            raise RefusedError
        after = {}
        for script, version in zip(scripts, versions, strict=True):
            state, chosen = self.existing(script), self.versions[version]
            if not chosen.is_published and chosen.base != state.live:
                raise RefusedError
            after[script] = replace(state, live=version)
        if not self.apply(after):
            raise RefusedError

    def existing(self, script: int) -> State:
        state = self.states[script]
        if not isinstance(state, State):
            raise RefusedError
        return state

    # --- Hooks -----------------------------------------------------------------------------------

    def create_hook(self, script: int, name: str) -> int:
        hook = next(self._ids)
        self.apply({hook: HookState(script, name)})
        return hook

    def change_hook(self, hook: int, **fields: object) -> None:
        state = self.states[hook]
        if state is None:
            raise RefusedError
        self.apply({hook: replace(state, **fields)})  # type: ignore[arg-type]

    def delete_hook(self, hook: int) -> None:
        self.apply({hook: None})

    def called(self, hook: int) -> int | None:
        """The version that a call runs; ``None`` if it is not found."""
        state = self.states[hook]
        if not isinstance(state, HookState) or not state.is_enabled:
            return None
        script = self.states[state.script]
        if not isinstance(script, State) or not script.is_enabled:
            return None
        return script.live if state.pin is None else state.pin

    def _hooks_of(self, scripts: Collection[int]) -> list[int]:
        return [
            key
            for key, state in self.states.items()
            if isinstance(state, HookState) and state.script in scripts
        ]

    # --- Drafts ----------------------------------------------------------------------------------

    def save_draft(self, script: int, author: str, source: str, *, sees_live: bool) -> int:
        """The draft, which may be a new one."""
        base: int | None = self.existing(script).live
        found = [key for key, each in self._of(script).items() if each.draft_of == author]
        if found:
            draft = self.versions[found[0]]
            base = base if sees_live else draft.base
            if draft.source == source or not draft.has_run:
                draft.source, draft.base = source, base
                return found[0]
            draft.draft_of = ""
        added = self._add(script, source)
        self.versions[added].draft_of, self.versions[added].base = author, base
        return added

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
