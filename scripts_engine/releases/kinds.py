"""The kinds of objects that releases change. Apps register theirs at start.

A state is what a release keeps of an object: a JSON object under the interface's names, without
secrets. Equal states mean that nothing changed. ``None`` stands for an object that does not exist.
Values of states may come from a client; enums are spelled as in GraphQL.
"""

import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import TextChoices

from accounts.models import Organisation
from accounts.scopes import Scope
from core.http.origin import Origin
from core.names import name_key
from core.plain_text import is_encodable
from scripts_engine.models import Action
from scripts_engine.releases.items import Field

State = dict[str, Any]
_WORDS_FOR_TYPES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}
# A kind's objects are found by the values within which their names are unique, and the name's key.
Place = tuple[Any, ...]


class Issued(NamedTuple):
    """A call token of a new hook, shown once."""

    object_id: uuid.UUID
    secret: str


class Kind(ABC):
    """How releases read, compare and change the objects of one kind."""

    name: ClassVar[str]
    """``Change.kind`` of the interface."""
    section: ClassVar[str]
    """The key of the kind's items in a manifest."""
    fields: ClassVar[Sequence[Field]] = ()
    """The keys of its items, and of its states."""
    unique_within: ClassVar[Sequence[str]] = ()
    """Fields within whose values names are unique; none: within the organisation."""

    @abstractmethod
    def states(
        self, organisation: Organisation, ids: Collection[uuid.UUID], *, lock: bool = False
    ) -> dict[uuid.UUID, State]:
        """The states of those that exist, by id; with ``lock``, their rows are locked first.

        Other organisations' ids are left out. Takes a fixed number of statements.
        """

    @abstractmethod
    def of_scripts(
        self, organisation: Organisation, script_ids: Collection[uuid.UUID]
    ) -> set[uuid.UUID]:
        """Ids of the existing objects that end with these scripts; the scripts' own for scripts."""

    @abstractmethod
    def scope_of(self, before: State | None, after: State | None) -> Scope:
        """The scope that this change needs."""

    @abstractmethod
    def put(
        self,
        organisation: Organisation,
        states: Mapping[uuid.UUID, State | None],
        *,
        origin: Origin,
    ) -> Sequence[Issued]:
        """Brings the objects into these states: creates, changes, restores and deletes.

        Runs in the transaction of a release, with the rows locked. Objects that were deleted come
        back with their ids and credentials. Records audit events. Raises ``ValidationError``,
        whose messages name the object, or ``LimitExceededError``.
        """

    @abstractmethod
    def differences(
        self, organisation: Organisation, changes: Sequence[tuple[State | None, State | None]]
    ) -> list[str]:
        """What each change, from a state to another, is for people, in their order.

        Lines of words, and a unified diff of a source. Takes a fixed number of statements.
        """

    def difference(
        self, organisation: Organisation, before: State | None, after: State | None
    ) -> str:
        """``differences`` of one change."""
        [text] = self.differences(organisation, [(before, after)])
        return text

    def misfits(self, state: State) -> Iterable[tuple[str, str]]:
        """Fields that contradict others of the state, each with the message.

        The state's fields are checked one by one, and its references are none of its concern.
        """
        return ()

    def script_of(self, object_id: uuid.UUID, state: State) -> uuid.UUID:
        """The script that the object runs, or is."""
        return uuid.UUID(state["script"])

    def version_of(self, state: State | None) -> uuid.UUID | None:
        """The version of a script that the state names, which must stay while the release does."""
        return None


_kinds: list[Kind] = []


def register_kind(kind: Kind) -> None:
    """Objects of a kind depend on those of kinds that were registered before it."""
    _kinds.append(kind)


def kinds() -> Sequence[Kind]:
    """Each after those that it depends on: scripts first."""
    return _kinds


def kind_named(name: str) -> Kind:
    return next(kind for kind in _kinds if kind.name == name)


def place_of(kind: Kind, state: State) -> Place:
    """What no other object of the kind has: its name's key, and that within which it is unique."""
    by_name = {each.name: each for each in kind.fields}
    within = (state[by_name[name].of_state] for name in kind.unique_within)
    return (*within, name_key(state["name"]))


def action_of(before: State | None, after: State | None) -> Action:
    if before is None or after is None:
        return Action.CREATE if before is None else Action.DELETE
    if before == after:
        return Action.NONE
    is_renamed = before["name"] != after["name"]
    is_rest_equal = before | {"name": after["name"]} == after
    return Action.RENAME if is_renamed and is_rest_equal else Action.UPDATE


def digest_of(state: State | None) -> str:
    """SHA-256, equal for equal states."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def value_in(state: State, name: str, kind: type) -> Any:
    """The value; ``None`` if it is null or left out. Raises ``ValidationError`` by its name."""
    value = state.get(name)
    if value is not None and type(value) is not kind:
        raise _invalid(name, f"Enter {_WORDS_FOR_TYPES[kind]}.")
    if isinstance(value, str) and ("\0" in value or not is_encodable(value)):
        raise _invalid(name, "Remove the control characters.")
    return value


def choice_in(state: State, name: str, choices: type[TextChoices]) -> str | None:
    """The stored value of an enum, like ``value_in``."""
    shown = value_in(state, name, str)
    if shown is None:
        return None
    for choice in choices:
        if member_name(choice) == shown:
            return str(choice.value)
    raise _invalid(name, f"Choose {', '.join(map(member_name, choices))}.")


def member_name(choice: TextChoices) -> str:
    """``EventId`` for ``EVENT_ID``."""
    return choice.name.title().replace("_", "")


def _invalid(name: str, message: str) -> ValidationError:
    return ValidationError({name: ValidationError(message, code="invalid")})


@contextmanager
def naming(kind: str, name: object) -> Iterator[None]:
    """Names the object in what is wrong with it."""
    try:
        yield
    except ValidationError as problem:
        raise about(kind, name, problem) from None


def about(kind: str, name: object, problem: ValidationError) -> ValidationError:
    return ValidationError([f"{kind} “{name}”: {message}" for message in problem.messages])
