"""What to run, for whom and why: a type for each way in which a run comes about.

A request that a person or a program has typed is checked before a script gets it.
"""

import re
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self, TypeVar

from django.core.exceptions import ValidationError

from accounts.models import ApiKey, User
from scripts_engine.host.capabilities import RecordedRun
from scripts_engine.models import Script, Trigger
from scripts_engine.programs import NO_PROGRAM, program_of
from scripts_engine.sandbox import NO_LIBRARIES, Libraries, Limits

METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE")
MAX_HEADERS = 100
MAX_HEADER_CHARACTERS = 8 * 1024
# RFC 9110, sections 5.1 and 5.5: a token, and the characters of a field value.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_QUERY = re.compile(r"[\x21-\x7e]*")


class Event(NamedTuple):
    """A call of a script, with its payload unchanged."""

    method: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    client_address: str
    path: str = ""
    """The part of the address after the hook's own, decoded, as ``/items/7``; ``""`` without one.
    """
    sender: str = ""
    """The hook's sender; ``""`` if the hook has none, or a person started the run."""
    verified: str = ""
    """How strongly the call proves its sender, as ``signed``; ``""`` if there is none."""
    event_id: str | None = None
    """The sender's id of the event, from signed material.

    ``""`` if deliveries are to be recognised by it and the call has none.
    """

    content: tuple[str | bytes, ...] = ()
    """What equal deliveries of a hook have in common where their body is compared."""

    shared_secrets: tuple[str, ...] = ()
    """Secrets that the payload may hold in clear; its record hides them."""

    @property
    def content_type(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == "content-type"), None)


class Author(NamedTuple):
    """Author of a change or a run: a person in the admin, or a program with its key."""

    user: User | None = None
    api_key: ApiKey | None = None


# Runs of a webhook call have no author.
NOBODY = Author()


def draft_owner(author: Author) -> str:
    """The author as ``ScriptVersion.draft_of`` names it."""
    if author.user is not None:
        return f"user {author.user.pk}"
    if author.api_key is not None:
        return f"key {author.api_key.pk}"
    raise ValueError("a draft belongs to a person or a key")


def _author_columns(author: Author) -> dict[str, uuid.UUID | None]:
    return {
        "started_by_id": None if author.user is None else author.user.pk,
        "started_with_id": None if author.api_key is None else author.api_key.pk,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """For whom a saved script runs, and why: what is known of a run before it starts."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID
    version_id: uuid.UUID | None
    """``None`` for a source that is not saved."""
    trigger: Trigger
    is_draft: bool = False
    """Whether what runs has never been live."""
    hook_id: uuid.UUID | None = None
    started_by: Author = NOBODY
    is_of_alert: bool = False
    """Whether it is run with an alert, or follows from such a run by a push or a replay."""

    def columns(self) -> dict[str, Any]:
        """Those of its run."""
        return {
            "organisation_id": self.organisation_id,
            "script_id": self.script_id,
            "script_version_id": self.version_id,
            "is_draft": self.is_draft,
            "hook_id": self.hook_id,
            "trigger": self.trigger.value,
            "is_of_alert": self.is_of_alert or None,
            **_author_columns(self.started_by),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun(RunOrigin):
    """A run of a saved script that starts now."""

    script_name: str
    timeout_seconds: float
    source: bytes
    libraries: Libraries = NO_LIBRARIES

    @classmethod
    def of_script(
        cls, script: Script, *, trigger: Trigger, started_by: Author = NOBODY, **others: Any
    ) -> Self:
        """A run of the script's current version, with the other fields of its type.

        Reads its program, unless this process has run it recently.
        """
        version_id = script.current_version_id
        program = NO_PROGRAM if version_id is None else program_of(version_id)
        return cls(
            organisation_id=script.organisation_id,
            script_id=script.pk,
            script_name=script.name,
            timeout_seconds=script.timeout_seconds,
            version_id=version_id,
            source=program.source,
            libraries=program.libraries,
            trigger=trigger,
            started_by=started_by,
            **others,
        )

    def params(self) -> dict[str, bytes]:
        """What the script sees of its run, where it differs from a try-out."""
        params = {"script_id": str(self.script_id).encode()}
        if self.hook_id is not None:
            params["hook_id"] = str(self.hook_id).encode()
        return params

    def recorded(self, run_id: uuid.UUID) -> RecordedRun:
        return RecordedRun(run_id, self.script_id, 0, is_of_alert=self.is_of_alert)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedAttempt(SavedRun):
    """An attempt at a run that was queued."""

    attempt: int
    first_run_id: uuid.UUID
    """The first attempt, which may be this one."""
    scheduled_at: datetime | None
    """The schedule's tick."""
    chain_depth: int
    """How many runs pushed one another until this one was pushed."""

    def params(self) -> dict[str, bytes]:
        params = SavedRun.params(self)
        params["attempt"] = str(self.attempt).encode()
        params["first_run_id"] = str(self.first_run_id).encode()
        if self.scheduled_at is not None:
            params["scheduled_at"] = self.scheduled_at.astimezone(UTC).isoformat().encode()
        return params

    def recorded(self, run_id: uuid.UUID) -> RecordedRun:
        return RecordedRun(run_id, self.script_id, self.chain_depth, is_of_alert=self.is_of_alert)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOut:
    """A person's run of a script that is not saved. It is not recorded."""

    organisation_id: uuid.UUID
    source: bytes
    started_by: Author
    libraries: Libraries = NO_LIBRARIES
    script_name: str = "script"
    timeout_seconds: float = Limits().wall_seconds
    trigger: Trigger = Trigger.ADMIN
    version_id: None = None

    def columns(self) -> dict[str, Any]:
        """Those of its run, which is shown and not saved."""
        return {
            "organisation_id": self.organisation_id,
            "is_draft": True,
            "trigger": self.trigger.value,
            **_author_columns(self.started_by),
        }

    def params(self) -> dict[str, bytes]:
        return {}


def run_params(spec: SavedRun | TryOut, event: Event, run_id: uuid.UUID) -> dict[str, bytes]:
    own_id = str(run_id).encode()
    params = {
        "method": event.method.encode("latin-1"),
        "query": event.query.encode("latin-1"),
        "remote_addr": event.client_address.encode("latin-1"),
        "run_id": own_id,
        "trigger": spec.trigger.value.encode(),
        "attempt": b"1",
        "first_run_id": own_id,
        "org_id": str(spec.organisation_id).encode(),
        "body": event.body,
        **spec.params(),
    }
    if event.path:
        params["path"] = event.path.encode()
    if (content_type := event.content_type) is not None:
        params["content_type"] = content_type.encode("latin-1")
    if event.sender:
        params["sender"] = event.sender.encode()
        params["verified"] = event.verified.encode()
        if event.event_id:
            params["event_id"] = event.event_id.encode()
    return params


Spec = TypeVar("Spec", bound=SavedRun)


def pinned_to(spec: Spec, version_id: uuid.UUID | None) -> Spec:
    """The run with this version of its script; ``None`` leaves the one that it has."""
    if version_id is None:
        return spec
    return replace(spec, version_id=version_id, **program_of(version_id)._asdict())


def clean_query(query: str) -> str:
    """The query without its question mark. Raises ``ValidationError``."""
    query = query.removeprefix("?")
    if not _QUERY.fullmatch(query):
        raise ValidationError("Write the query as in a URL: page=2&q=tea%20pot.")
    return query


def clean_header(name: str, value: str) -> tuple[str, str]:
    """The header with its value trimmed. Raises ``ValidationError``."""
    value = value.strip(" \t")
    is_short = len(name) + len(value) <= MAX_HEADER_CHARACTERS
    if not is_short or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise ValidationError(f"“{name[:60]}” is not a valid header.")
    return name, value
